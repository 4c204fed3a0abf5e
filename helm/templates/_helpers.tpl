{{/* The name of everything the chart makes. */}}
{{- define "svc.fullname" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "svc.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* A value of `config` as text. A YAML number is a float64 here, which toString writes as 1.234567e+06. */}}
{{- define "svc.text" -}}
{{- if and (kindIs "float64" .) (eq (floor .) .) }}{{ int64 . }}{{ else }}{{ toString . }}{{ end -}}
{{- end -}}

{{- define "svc.labels" -}}
{{ include "svc.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "svc.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (ternary (include "svc.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "svc.image" -}}
{{- with .Values.image -}}
{{- .repository -}}
{{- if .digest -}}@{{ .digest }}{{- else -}}:{{ .tag | default $.Chart.AppVersion }}{{- end -}}
{{- end -}}
{{- end -}}

{{/* The port of plain HTTP: with TLS the redirecting one, else that of SVC_LISTEN_ADDR or the service's own default. */}}
{{- define "svc.port" -}}
{{- if .Values.tls.secretName -}}80{{- else -}}
{{- .Values.config.SVC_LISTEN_ADDR | default "[::]:3000" | regexFind "[0-9]+$" -}}
{{- end -}}
{{- end -}}

{{/* The port that asks for client certificates, with TLS; the service's own default where SVC_MTLS_PORT is unset. */}}
{{- define "svc.mtlsPort" -}}
{{- include "svc.text" (.Values.config.SVC_MTLS_PORT | default 8443) -}}
{{- end -}}

{{/* The host of SVC_BASE_URL, which is the only one that the service answers for. */}}
{{- define "svc.host" -}}
{{- (urlParse .Values.config.SVC_BASE_URL).hostname | lower -}}
{{- end -}}

{{/*
The keys that the Secret must have, a line each, maybe after an empty one: the slug of a provider becomes a name as load-config.ts makes
it. With a configuration document all but SVC_DATABASE_URL and SVC_DATABASE_DIRECT_URL are optional.
*/}}
{{- define "svc.secretKeys" -}}
{{- if not .Values.database.primaryService }}
SVC_DATABASE_URL
{{- if .Values.config.SVC_DATABASE_POOLER }}
SVC_DATABASE_DIRECT_URL
{{- end }}
{{- end }}
{{- if not .Values.config.SVC_JWT_HMAC_KMS_KEY_ID }}
SVC_JWT_SECRET
{{- end }}
{{- if not .Values.config.SVC_SSH_CA_KMS_KEY_ID }}
SVC_SSH_CA_KEY
{{- end }}
{{- range splitList "," .Values.config.SVC_IDPS }}
{{- with trim . }}
{{- $name := . | replace "-" "_" | upper }}
{{- if ne (index $.Values.config (printf "SVC_IDP_%s_TYPE" $name) | default "oidc") "saml" }}
SVC_IDP_{{ $name }}_CLIENT_SECRET
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{/* The URL of the database at one of its Services. It has no user and no password: the driver takes them from PGUSER and PGPASSWORD. */}}
{{- define "svc.databaseUrl" -}}
{{- with .database -}}
postgres://{{ $.host }}:{{ $.port }}/{{ .name }}{{ with .parameters }}?{{ . }}{{ end }}
{{- end -}}
{{- end -}}

{{/*
The variables of the database where `database` names its Services, for the service and for the job of migrations; empty otherwise. A
password is never a part of a URL, in which some characters would have to be written in another way.
*/}}
{{- define "svc.databaseEnv" -}}
{{- with .Values.database -}}
{{- if .primaryService -}}
{{- $direct := include "svc.databaseUrl" (dict "database" . "host" .primaryService "port" .port) -}}
{{- range $name, $key := dict "PGUSER" "username" "PGPASSWORD" "password" }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $.Values.database.credentialsSecret }}
      key: {{ $key }}
{{- end }}
- name: SVC_DATABASE_URL
  value: {{ ternary (include "svc.databaseUrl" (dict "database" . "host" .poolerService "port" .poolerPort)) $direct (ne .poolerService "") | quote }}
{{- if .poolerService }}
- name: SVC_DATABASE_DIRECT_URL
  value: {{ $direct | quote }}
{{- end }}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The variables by which OTLP says of which pod the delay of the event loop is; empty unless the autoscaler asks for it. */}}
{{- define "svc.podEnv" -}}
{{- if and .Values.autoscaling.enabled .Values.autoscaling.eventLoopDelay.milliseconds -}}
- name: K8S_NAMESPACE_NAME
  valueFrom: { fieldRef: { fieldPath: metadata.namespace } }
- name: K8S_POD_NAME
  valueFrom: { fieldRef: { fieldPath: metadata.name } }
- name: OTEL_RESOURCE_ATTRIBUTES
  value: k8s.namespace.name=$(K8S_NAMESPACE_NAME),k8s.pod.name=$(K8S_POD_NAME)
{{- end -}}
{{- end -}}

{{/* The init containers, with the rights of the server's own container where they ask for no others. */}}
{{- define "svc.initContainers" -}}
{{- $rights := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "capabilities" (dict "drop" (list "ALL")) -}}
{{- $containers := list -}}
{{- range .Values.initContainers -}}
{{- $containers = append $containers (mergeOverwrite (dict "securityContext" (deepCopy $rights)) .) -}}
{{- end -}}
{{- if $containers -}}{{ toYaml $containers }}{{- end -}}
{{- end -}}

{{/* Not empty where extraEnv sets NODE_OPTIONS. */}}
{{- define "svc.setsNodeOptions" -}}
{{- range .Values.extraEnv }}{{ if eq .name "NODE_OPTIONS" }}yes{{ end }}{{ end -}}
{{- end -}}

{{/*
What a pod's annotation has, so that another version of a Secret makes new pods: the hash of secretChecksum, or else of the
versions of the Secrets and ConfigMaps in the cluster. Their content does not get into it, because more people may read pods than
Secrets, and a weak password could be guessed from a hash. Empty without a cluster, as in `helm template`.
*/}}
{{- define "svc.secretChecksum" -}}
{{- if .Values.secretChecksum -}}
{{- .Values.secretChecksum | sha256sum -}}
{{- else -}}
{{- $sources := list (list "Secret" .Values.existingSecret) (list "Secret" .Values.tls.secretName) (list "Secret" .Values.database.credentialsSecret) -}}
{{- range .Values.extraEnvFrom -}}
{{- with .secretRef }}{{ $sources = append $sources (list "Secret" .name) }}{{ end -}}
{{- with .configMapRef }}{{ $sources = append $sources (list "ConfigMap" .name) }}{{ end -}}
{{- end -}}
{{- $versions := list -}}
{{- range $source := $sources -}}
{{- if last $source -}}
{{- with (lookup "v1" (first $source) $.Release.Namespace (last $source)).metadata -}}
{{- $versions = append $versions (printf "%s %s %s" (last $source) .uid .resourceVersion) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if $versions -}}{{- $versions | join "\n" | sha256sum -}}{{- end -}}
{{- end -}}
{{- end -}}

{{/*
The variables that extraEnv must not set: all of the service, which belong in `config` or in the Secret and are checked there
(certification test mode has no place in either), the others that the chart sets, and the one that makes Node trust every
certificate.
*/}}
{{- define "svc.refusedVariables" -}}
^(SVC_.*|AWS_(REGION|ENDPOINT_URL|ENDPOINT_URL_KMS|ACCESS_KEY_ID|SECRET_ACCESS_KEY)|OTEL_EXPORTER_OTLP_(ENDPOINT|PROTOCOL)|OTEL_SERVICE_NAME|RUST_LOG|NODE_TLS_REJECT_UNAUTHORIZED)$
{{- end -}}

{{/* The folders that no volume may cover: the service's own, where a file `.env` would be read as its settings, and the certificate's. */}}
{{- define "svc.refusedMounts" -}}
^/?$|^/(app|tls)(/|$)
{{- end -}}

{{/* Fails with everything that is missing or contradicts itself, a line each, as the service does for its variables. */}}
{{- define "svc.check" -}}
{{- $problems := list -}}
{{- if not .Values.image.repository -}}
{{- $problems = append $problems "image.repository: is required; build the Dockerfile and push the image" -}}
{{- end -}}
{{- if not .Values.existingSecret -}}
{{- $keys := include "svc.secretKeys" . | trim | splitList "\n" | join ", " -}}
{{- $problems = append $problems (printf "existingSecret: is required; name a Secret with the keys %s" $keys) -}}
{{- end -}}
{{- if not .Values.config.SVC_BASE_URL -}}
{{- $problems = append $problems "config.SVC_BASE_URL: is required" -}}
{{- end -}}
{{- if not (or .Values.config.SVC_IDPS .Values.config.SVC_S3_CONFIG_BUCKET) -}}
{{- $problems = append $problems "config.SVC_IDPS: is required" -}}
{{- end -}}
{{- if and (or .Values.ingress.enabled .Values.httpRoute.enabled .Values.tls.secretName) (not (hasPrefix "https://" .Values.config.SVC_BASE_URL)) -}}
{{- $problems = append $problems "config.SVC_BASE_URL: must be https, with an ingress or a route as with tls.secretName" -}}
{{- end -}}
{{- if and .Values.ingress.enabled .Values.tls.secretName -}}
{{- $problems = append $problems "tls.secretName: TLS ends at the ingress already; with both, every request would be redirected" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled .Values.tls.secretName -}}
{{- $problems = append $problems "tls.secretName: TLS ends at the gateway already; with both, every request would be redirected" -}}
{{- end -}}
{{- if and .Values.httpRoute.enabled (not .Values.httpRoute.parentRefs) -}}
{{- $problems = append $problems "httpRoute.parentRefs: is required when enabled; name the Gateway" -}}
{{- end -}}
{{- if .Values.autoscaling.enabled -}}
{{- if lt (int .Values.autoscaling.maxReplicas) (int .Values.autoscaling.minReplicas) -}}
{{- $problems = append $problems "autoscaling.maxReplicas: must be minReplicas or more" -}}
{{- end -}}
{{- if not (dig "requests" "cpu" "" .Values.resources) -}}
{{- $problems = append $problems "resources.requests.cpu: is required for autoscaling, which measures by it" -}}
{{- end -}}
{{- with .Values.autoscaling.eventLoopDelay.milliseconds -}}
{{- if lt (int .) 20 -}}
{{- $problems = append $problems "autoscaling.eventLoopDelay.milliseconds: must be 20 or more; a process at rest has 10" -}}
{{- end -}}
{{- if not $.Values.config.OTEL_EXPORTER_OTLP_ENDPOINT -}}
{{- $problems = append $problems "autoscaling.eventLoopDelay: needs config.OTEL_EXPORTER_OTLP_ENDPOINT, to which the delay is sent" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with .Values.database -}}
{{- if and .primaryService (not .credentialsSecret) -}}
{{- $problems = append $problems "database.credentialsSecret: is required with database.primaryService; name a Secret with the keys username and password" -}}
{{- end -}}
{{- if and .primaryService (ne (empty .poolerService) (empty $.Values.config.SVC_DATABASE_POOLER)) -}}
{{- $problems = append $problems "database.poolerService: needs config.SVC_DATABASE_POOLER, which says what the pooler can, and is required with it" -}}
{{- end -}}
{{- if and (not .primaryService) (or .poolerService .credentialsSecret) -}}
{{- $problems = append $problems "database.primaryService: is required with the other services of the database" -}}
{{- end -}}
{{- end -}}
{{- $own := printf "%s\n%s" (include "svc.databaseEnv" .) (include "svc.podEnv" .) | splitList "\n" -}}
{{- range .Values.extraEnv -}}
{{- if and (has (printf "- name: %s" .name) $own) (not (hasPrefix "SVC_" .name)) -}}
{{- $problems = append $problems (printf "extraEnv: must not set %s, which the chart sets itself with these values" .name) -}}
{{- end -}}
{{- end -}}
{{- $refused := include "svc.refusedVariables" . -}}
{{- range .Values.extraEnv -}}
{{- if regexMatch $refused .name -}}
{{- $problems = append $problems (printf "extraEnv: must not set %s; settings of the service belong in config, or in the Secret" .name) -}}
{{- end -}}
{{- end -}}
{{- range .Values.extraVolumes -}}
{{- if eq .name "tls" -}}
{{- $problems = append $problems "extraVolumes: the name tls is that of tls.secretName; take another" -}}
{{- end -}}
{{- end -}}
{{- $refused = include "svc.refusedMounts" . -}}
{{- range .Values.extraVolumeMounts -}}
{{- if regexMatch $refused (clean .mountPath) -}}
{{- $problems = append $problems (printf "extraVolumeMounts: %s must not be in /app or /tls, the folders of the service" .mountPath) -}}
{{- end -}}
{{- end -}}
{{- if and (ne .Values.service.type "ClusterIP") (not .Values.tls.secretName) -}}
{{- $problems = append $problems "service.type: must be ClusterIP without tls.secretName; plain HTTP is not for the outside" -}}
{{- end -}}
{{- if and .Values.networkPolicy.enabled (not .Values.networkPolicy.from) -}}
{{- $problems = append $problems "networkPolicy.from: is required when enabled; an empty list would admit everybody" -}}
{{- end -}}
{{- if $problems -}}
{{- fail (printf "\n%s" (join "\n" $problems)) -}}
{{- end -}}
{{- end -}}
