{{/* The name of everything the chart makes. */}}
{{- define "svc.fullname" -}}
{{- .Values.fullnameOverride | default .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "svc.selectorLabels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
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
{{- .Values.config.SVC_MTLS_PORT | default 8443 -}}
{{- end -}}

{{/* The host of SVC_BASE_URL, which is the only one that the service answers for. */}}
{{- define "svc.host" -}}
{{- (urlParse .Values.config.SVC_BASE_URL).hostname | lower -}}
{{- end -}}

{{/*
The keys that the Secret must have, a line each: the slug of a provider becomes a name as load-config.ts makes it. With a
configuration document all but the first are optional.
*/}}
{{- define "svc.secretKeys" -}}
SVC_DATABASE_URL
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

{{/* Fails with everything that is missing or contradicts itself, a line each, as the service does for its variables. */}}
{{- define "svc.check" -}}
{{- $problems := list -}}
{{- if not .Values.image.repository -}}
{{- $problems = append $problems "image.repository: is required; build the Dockerfile and push the image" -}}
{{- end -}}
{{- if not .Values.existingSecret -}}
{{- $keys := include "svc.secretKeys" . | splitList "\n" | join ", " -}}
{{- $problems = append $problems (printf "existingSecret: is required; name a Secret with the keys %s" $keys) -}}
{{- end -}}
{{- if not .Values.config.SVC_BASE_URL -}}
{{- $problems = append $problems "config.SVC_BASE_URL: is required" -}}
{{- end -}}
{{- if not (or .Values.config.SVC_IDPS .Values.config.SVC_S3_CONFIG_BUCKET) -}}
{{- $problems = append $problems "config.SVC_IDPS: is required" -}}
{{- end -}}
{{- if and (or .Values.ingress.enabled .Values.tls.secretName) (not (hasPrefix "https://" .Values.config.SVC_BASE_URL)) -}}
{{- $problems = append $problems "config.SVC_BASE_URL: must be https, with an ingress as with tls.secretName" -}}
{{- end -}}
{{- if and .Values.ingress.enabled .Values.tls.secretName -}}
{{- $problems = append $problems "tls.secretName: TLS ends at the ingress already; with both, every request would be redirected" -}}
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
