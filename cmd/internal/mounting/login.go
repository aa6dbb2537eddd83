package mounting

import (
	"os"
	"path/filepath"
	"strings"

	"rankfs/meta"
)

// A login proves the identity of a mount to an HDFS with Kerberos. It has the names
// of files, never what is in them.
type login struct {
	keytab    string
	principal string // whose keys the keytab has
	cache     string // of tickets; only if an option names it
	actFor    string

	environ string // the cache that the environment names, where neither is given
	conf    string // krb5.conf
}

func defaultLogin() login {
	// Of several files the first counts: the library reads one.
	conf, _, _ := strings.Cut(os.Getenv("KRB5_CONFIG"), ":")
	return login{environ: os.Getenv("KRB5CCNAME"), conf: conf}
}

// complete checks the options, and makes the path from the environment
// absolute. User is that of an HDFS without Kerberos.
func (l login) complete(user string) (login, error) {
	switch {
	case user != "" && (l.keytab != "" || l.principal != "" || l.cache != ""):
		return l, meta.Worded(meta.ErrInvalid, "hdfs-user %q is for an HDFS without Kerberos, which has no login; leave it out, or give hdfs-act-for", user)
	case l.keytab != "" && l.cache != "":
		return l, meta.Worded(meta.ErrInvalid, "hdfs-keytab %q and hdfs-cache %q: give one of them", l.keytab, l.cache)
	case l.keytab != "" && l.principal == "":
		return l, meta.Worded(meta.ErrInvalid, "hdfs-keytab %q: whose keys it has is missing; give hdfs-principal, which 'klist -kt %[1]s' shows", l.keytab)
	case l.keytab == "" && l.principal != "":
		return l, meta.Worded(meta.ErrInvalid, "hdfs-principal %q: its keys are missing; give hdfs-keytab", l.principal)
	}
	l.environ = strings.TrimPrefix(l.environ, "FILE:")
	if l.environ == "" || strings.Contains(l.environ, ":") { // such as KEYRING:, no file
		return l, nil
	}
	var err error
	l.environ, err = filepath.Abs(l.environ)
	return l, err
}

// tickets is the cache to use, or empty for that of kinit.
func (l login) tickets() string {
	switch {
	case l.keytab != "":
		return ""
	case l.cache != "":
		return l.cache
	}
	return l.environ
}

// env is the environment of a child that runs elsewhere.
func (l login) env(of []string) []string {
	if l.environ == "" {
		return of
	}
	return append(of, "KRB5CCNAME="+l.environ) // the last counts
}
