package hdfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
)

// identify sets the user that calls of a cluster are made as, and how that user
// authenticates.
func (c *Clusters) identify(conf *namenode.Config) error {
	conf.ActFor = c.config.ActFor
	if conf.Kerberos == nil {
		return c.byName(conf)
	}
	if c.config.User != "" {
		return fmt.Errorf("HDFS user %q %w: the cluster wants Kerberos, which says who we are; leave the user out, or act for him", c.config.User, meta.ErrInvalid)
	}
	login := c.config.Kerberos
	login.Service, login.Protection = conf.Kerberos.Service, conf.Kerberos.Protection
	conf.Kerberos = &login
	return nil
}

// byName gives a name that the cluster believes.
func (c *Clusters) byName(conf *namenode.Config) error {
	if login := c.config.Kerberos; login.Keytab != "" {
		return fmt.Errorf("keytab %q %w: the Hadoop configuration %q does not say that the cluster wants Kerberos; give one that does, or leave the keytab out",
			login.Keytab, meta.ErrInvalid, c.config.Conf)
	}
	conf.User = c.config.User
	if conf.User == "" {
		u, err := user.Current()
		if err != nil {
			return fmt.Errorf("HDFS user: %w; name one", err)
		}
		conf.User = u.Username
	}
	return nil
}

// readable reports whether a file, if one is named, can be read: a daemon
// without its keys is better not started.
func readable(keytab string) error {
	if keytab == "" {
		return nil
	}
	f, err := os.Open(keytab)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("keytab %s %w; name one that this user may read", keytab, meta.ErrNotExist)
	case err != nil:
		return fmt.Errorf("keytab: %w; name one that this user may read", err)
	}
	return f.Close()
}
