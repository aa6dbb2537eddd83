package hdfs

import (
	"fmt"
	"os/user"
	"strings"

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
		return fmt.Errorf("HDFS user %q %w: the cluster wants Kerberos, which says who we are; leave the user out, or give hdfs-act-for", c.config.User, meta.ErrInvalid)
	}
	login := c.config.Kerberos
	login.Service, login.Protection = conf.Kerberos.Service, conf.Kerberos.Protection
	conf.Kerberos = &login
	return nil
}

// userOf is the user that a cluster is read as, without the host that a principal may
// name. It is empty if only a file of tickets says it.
func userOf(conf namenode.Config) string {
	switch {
	case conf.ActFor != "":
		return conf.ActFor
	case conf.Kerberos == nil:
		return conf.User
	}
	name, realm, _ := strings.Cut(conf.Kerberos.Principal, "@")
	name, _, _ = strings.Cut(name, "/")
	if name == "" {
		return ""
	}
	return name + "@" + realm
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
