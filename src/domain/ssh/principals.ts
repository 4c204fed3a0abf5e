/** The kinds of SSH principals that a deployment can give its users (SVC_SSH_PRINCIPALS). */
export type PrincipalKind = 'email' | 'username';

/** The local parts of e-mail addresses that are valid account names on every Unix system. */
const ACCOUNT_NAME = /^[a-z_][a-z0-9_-]{0,31}$/;

/**
 * Names of accounts of operating systems, cloud images and usual services. Such a name in an e-mail
 * address is not given as a principal, so that no user can log in to the account.
 */
const SYSTEM_ACCOUNTS = new Set(
  `root toor daemon bin sys sync games man lp mail news uucp proxy www-data backup list irc gnats nobody nogroup
   adm operator halt shutdown ftp http nut dbus polkitd tss rpc rpcuser rpcbind nfsnobody saslauth abrt unbound
   _apt _chrony _rpc _ssh _sshd _www _ntp _syslogd _dhcpcd _flatpak _lldpd _unbound
   sshd ntp chrony messagebus syslog uuidd tcpdump landscape pollinate avahi avahi-autoipd colord cups dnsmasq
   usbmux usbmuxd whoopsie kernoops saned pulse rtkit geoclue gdm gdm3 lightdm sddm hplip lxd fwupd-refresh
   postfix postdrop exim debian-exim dovecot dovenull opendkim named bind apache apache2 nginx caddy haproxy squid
   varnish tomcat jetty mysql mariadb postgres postgresql pgbouncer redis memcache memcached mongodb mongod
   cassandra elasticsearch kibana logstash rabbitmq kafka zookeeper etcd consul vault nomad prometheus grafana
   telegraf influxdb zabbix nagios icinga munin collectd puppet chef salt ansible jenkins gitlab gitlab-runner
   git gitea gogs svn hg docker dockremap containerd podman kube kubelet libvirt libvirt-qemu qemu kvm
   ceph gluster hdfs hadoop spark airflow openvpn strongswan wireguard tor clamav ossec wazuh splunk
   ubuntu debian fedora centos rocky almalinux rhel ec2-user cloud-user opc azureuser core coreos vagrant pi
   alpine arch opensuse suse freebsd bitnami maintuser outscale ssm-user
   admin administrator superuser sudo wheel staff user users guest test support`.split(/\s+/),
);

/**
 * Lists the principals that a user may have.
 *
 * @param email the verified e-mail address, lower-cased
 * @param kinds the kinds of principals that the deployment gives
 * @param ownsUsernames true if the user belongs to the one organization in which user names are
 *   principals. In another organization a user may have the same local part
 * @returns the e-mail address, the account name, both or none, in this order
 */
export function principalsOf(
  email: string,
  kinds: ReadonlySet<PrincipalKind>,
  ownsUsernames: boolean,
): string[] {
  const principals: string[] = [];
  if (kinds.has('email')) principals.push(email);
  const localPart = email.slice(0, email.lastIndexOf('@'));
  if (kinds.has('username') && ownsUsernames && isPersonalAccount(localPart)) {
    principals.push(localPart);
  }
  return principals;
}

function isPersonalAccount(name: string): boolean {
  return ACCOUNT_NAME.test(name) && !name.startsWith('systemd-') && !SYSTEM_ACCOUNTS.has(name);
}
