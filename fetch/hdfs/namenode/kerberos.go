package namenode

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"rankfs/meta"
)

// Kerberos says how to authenticate. With neither Keytab nor Cache set, the
// credential cache is the file that kinit writes by default.
type Kerberos struct {
	// Service is the namenodes' principal, such as nn/_HOST@EXAMPLE.COM, where
	// _HOST stands for the host of the address.
	Service string
	// Protection are the guards that packets may have, of authentication,
	// integrity and privacy, best first. If empty, the strongest that the namenode
	// offers is used.
	Protection []string

	// Principal is the principal of the key in Keytab, such as
	// rankfs/node1@EXAMPLE.COM.
	Principal string
	Keytab    string
	// Cache is a file of tickets. It is read again when it changes, and its
	// ticket-granting ticket is renewed as long as the KDC allows.
	Cache string
	// Conf is krb5.conf; /etc/krb5.conf if empty.
	Conf string
}

func (k *Kerberos) check() error {
	if service, host, ok := strings.Cut(k.Service, "/"); !ok || service == "" || host == "" {
		return fmt.Errorf("namenode principal %q %w: give dfs.namenode.kerberos.principal, such as nn/_HOST@REALM", k.Service, meta.ErrInvalid)
	}
	if (k.Keytab == "") != (k.Principal == "") {
		return fmt.Errorf("keytab %q and principal %q %w: give both or neither", k.Keytab, k.Principal, meta.ErrInvalid)
	}
	if k.Keytab != "" && k.Cache != "" {
		return fmt.Errorf("keytab %q and credential cache %q %w: give one of them", k.Keytab, k.Cache, meta.ErrInvalid)
	}
	if kind, _, ok := strings.Cut(k.Cache, ":"); ok && !strings.Contains(kind, "/") {
		return fmt.Errorf("credential cache %q %w: only files can be read; run kinit -c FILE, and name that or a keytab", k.Cache, meta.ErrInvalid)
	}
	_, err := guardsOf(k.Protection)
	return err
}

// service is the principal, without its realm, of the namenode at an address.
func (k *Kerberos) service(addr string) (principal, realm string, err error) {
	return principalAt(k.Service, addr)
}

// webService is the service of its WebHDFS, which RFC 4559 names.
func (k *Kerberos) webService(addr string) (principal, realm string, err error) {
	_, realm, _ = strings.Cut(k.Service, "@")
	return principalAt("HTTP/_HOST@"+realm, addr)
}

func principalAt(pattern, addr string) (principal, realm string, err error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return "", "", err
	}
	principal, realm, _ = strings.Cut(pattern, "@")
	if !strings.HasSuffix(principal, "/_HOST") {
		return principal, realm, nil
	}
	if net.ParseIP(host) != nil {
		return "", "", fmt.Errorf("namenode address %q %w: with Kerberos give the host's name, which its principal has", addr, meta.ErrInvalid)
	}
	return strings.TrimSuffix(principal, "_HOST") + strings.ToLower(host), realm, nil
}

// allowsWeb reports whether packets by a WebHDFS are guarded as RPC's have to be.
func (k *Kerberos) allowsWeb(url string) bool {
	if k == nil || strings.HasPrefix(url, "https:") {
		return true
	}
	guards, err := guardsOf(k.Protection)
	return err == nil && slices.Contains(guards, authentication)
}

// A guard is the protection of packets, as a bit of SASL's GSSAPI mechanism.
type guard byte

const (
	authentication guard = 1 << iota // of the connection, nothing to packets
	integrity
	privacy
)

var guardNames = map[string]guard{"authentication": authentication, "integrity": integrity, "privacy": privacy}

func (g guard) String() string {
	for name, is := range guardNames {
		if is == g {
			return name
		}
	}
	return fmt.Sprintf("guard %d", byte(g))
}

func guardsOf(names []string) ([]guard, error) {
	if len(names) == 0 {
		return []guard{privacy, integrity, authentication}, nil
	}
	var out []guard
	for _, n := range names {
		g, known := guardNames[strings.ToLower(n)]
		if !known {
			return nil, fmt.Errorf("hadoop.rpc.protection %q %w: give authentication, integrity or privacy", n, meta.ErrInvalid)
		}
		out = append(out, g)
	}
	return out, nil
}

// choose takes the first guard that the namenode offers too.
func (k *Kerberos) choose(offered byte) (guard, error) {
	guards, err := guardsOf(k.Protection)
	if err != nil {
		return 0, err
	}
	for _, g := range guards {
		if offered&byte(g) != 0 {
			return g, nil
		}
	}
	var names []string
	for _, g := range []guard{authentication, integrity, privacy} {
		if offered&byte(g) != 0 {
			names = append(names, g.String())
		}
	}
	return 0, fmt.Errorf("hadoop.rpc.protection %q %w: the namenode demands %s; make them agree",
		strings.Join(k.Protection, ","), meta.ErrInvalid, strings.Join(names, " or "))
}
