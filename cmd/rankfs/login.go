package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"rankfs/meta"
)

// A login is how to prove who we are to an HDFS with Kerberos. It has the names
// of files, never what is in them.
type login struct {
	keytab    string
	principal string // whose keys the keytab has
	cache     string // of tickets; only if a person named it
	actFor    string

	environ string // the cache that the environment names, for want of both
	conf    string // krb5.conf
}

func defaultLogin() login {
	// Of several files the first counts: the library reads one.
	conf, _, _ := strings.Cut(os.Getenv("KRB5_CONFIG"), ":")
	return login{environ: os.Getenv("KRB5CCNAME"), conf: conf}
}

// flags lets l be set by flags.
func (l *login) flags(f *pflag.FlagSet) {
	f.StringVar(&l.keytab, "hdfs-keytab", "", "log in to HDFS with the key in `FILE`, as --hdfs-principal")
	f.StringVar(&l.principal, "hdfs-principal", "", "log in to HDFS as `NAME`, as rankfs/node1@EXAMPLE.COM")
	f.StringVar(&l.cache, "hdfs-cache", "", "log in to HDFS with the tickets in `FILE` (default $KRB5CCNAME, else what kinit writes)")
	f.StringVar(&l.actFor, "hdfs-act-for", "", "be `USER` in HDFS, for whom the one who logs in may act")
	f.StringVar(&l.conf, "krb5-conf", l.conf, "find the KDC by `FILE` (default $KRB5_CONFIG, else /etc/krb5.conf)")
}

// set takes one option of fstab, if it is of a login.
func (l *login) set(key, value string) (err error) {
	switch key {
	case "hdfs-keytab":
		l.keytab, err = absolute(value)
	case "hdfs-principal":
		l.principal = value
	case "hdfs-cache":
		l.cache, err = absolute(strings.TrimPrefix(value, "FILE:"))
	case "hdfs-act-for":
		l.actFor = value
	case "krb5-conf":
		l.conf, err = absolute(value)
	default:
		return errUnknownOption
	}
	return err
}

// complete checks what a person wrote and makes paths absolute. User is that
// of an HDFS without Kerberos.
func (l login) complete(user string) (login, error) {
	switch {
	case user != "" && (l.keytab != "" || l.principal != "" || l.cache != ""):
		return l, failf(meta.ErrInvalid, "hdfs-user %q is for an HDFS without Kerberos, where nobody logs in; leave it out, or give hdfs-act-for", user)
	case l.keytab != "" && l.cache != "":
		return l, failf(meta.ErrInvalid, "hdfs-keytab %q and hdfs-cache %q: give one of them", l.keytab, l.cache)
	case l.keytab != "" && l.principal == "":
		return l, failf(meta.ErrInvalid, "hdfs-keytab %q: whose keys it has is missing; give hdfs-principal, which 'klist -kt %[1]s' shows", l.keytab)
	case l.keytab == "" && l.principal != "":
		return l, failf(meta.ErrInvalid, "hdfs-principal %q: its keys are missing; give hdfs-keytab", l.principal)
	}
	l.cache = strings.TrimPrefix(l.cache, "FILE:")
	l.environ = strings.TrimPrefix(l.environ, "FILE:")
	for _, path := range []*string{&l.keytab, &l.cache, &l.conf, &l.environ} {
		if *path == "" || path == &l.environ && strings.Contains(*path, ":") { // such as KEYRING:, no file
			continue
		}
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return l, err
		}
	}
	return l, nil
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

// args spells a complete login as flags. What is from the environment the child
// finds there too.
func (l login) args() (args []string) {
	for _, flag := range []struct{ name, value string }{
		{"hdfs-keytab", l.keytab}, {"hdfs-principal", l.principal}, {"hdfs-cache", l.cache},
		{"hdfs-act-for", l.actFor}, {"krb5-conf", l.conf},
	} {
		if flag.value != "" {
			args = append(args, "--"+flag.name+"="+flag.value)
		}
	}
	return args
}
