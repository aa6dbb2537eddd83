package namenode

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os/user"
	"time"

	"rankfs/meta"
)

// A Config says which namenodes to ask, and as which user.
type Config struct {
	// Addresses are HOST:PORT of the namenodes of one nameservice.
	Addresses []string
	// Named says that the Hadoop configuration names this HDFS. It is set by FromConf.
	Named bool
	// Web are the same namenodes' WebHDFS, such as https://nn1:9871. It is asked
	// when none answers at its address.
	Web []string
	// Roots are the authorities that certificates of WebHDFS are believed by;
	// the system's if nil.
	Roots *x509.CertPool

	// User is the user to call as; the process's user if empty. With Kerberos it
	// is the ticket's principal and must be left empty.
	User string
	// ActFor is the user that User acts for, if the namenode's hadoop.proxyuser
	// settings allow it; empty if User acts for itself.
	ActFor string

	// Timeout bounds each call, with all its retries. The default, 20 s, is
	// twice the time of a fail-over or a long garbage collection in a namenode,
	// and a fraction of the time that an open of a batch may wait.
	Timeout time.Duration

	// Dial opens connections; net.Dialer's DialContext if nil.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Log is told of fail-overs; if nil they are not logged.
	Log *slog.Logger
	// Kerberos, if not nil, is demanded of the namenodes.
	Kerberos *Kerberos

	// Data is for readers of blocks; the client itself uses only UseHostname.
	Data Data
}

// Data holds the settings of a Hadoop configuration for connections to datanodes.
type Data struct {
	UseHostname bool     // connect to a datanode's name, not to its address
	Protection  []string // of dfs.data.transfer.protection, such as integrity
	Encrypt     bool     // dfs.encrypt.data.transfer
	ByFile      bool     // dfs.client.read.shortcircuit: read blocks of this host by their files
	Socket      string   // dfs.domain.socket.path, by which datanodes pass the files
}

const (
	defaultTimeout = 20 * time.Second
	maxAddresses   = 16 // a nameservice has two or three namenodes
)

// withDefaults returns the configuration with defaults filled in, if it is valid.
func (c Config) withDefaults() (Config, error) {
	if len(c.Addresses) == 0 || len(c.Addresses) > maxAddresses {
		return c, fmt.Errorf("namenodes %q %w: give 1 to %d addresses HOST:PORT", c.Addresses, meta.ErrInvalid, maxAddresses)
	}
	for _, addr := range c.Addresses {
		if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
			return c, fmt.Errorf("namenode address %q %w: give HOST:PORT, as in fs.defaultFS", addr, meta.ErrInvalid)
		}
	}
	if c.Kerberos != nil && c.User != "" {
		return c, fmt.Errorf("namenode user %q %w: with Kerberos the user is that of the ticket", c.User, meta.ErrInvalid)
	}
	if c.Kerberos != nil {
		if err := c.Kerberos.check(); err != nil {
			return c, err
		}
	}
	if len(c.Web) > maxAddresses {
		return c, fmt.Errorf("%d addresses of WebHDFS %w: give at most %d", len(c.Web), meta.ErrInvalid, maxAddresses)
	}
	for _, addr := range c.Web {
		if _, err := webURL(addr); err != nil {
			return c, err
		}
		if !c.Kerberos.allowsWeb(addr) {
			return c, fmt.Errorf("WebHDFS %q %w: hadoop.rpc.protection demands more than HTTP gives; give HTTPS, or leave it out", addr, meta.ErrInvalid)
		}
	}
	if c.Timeout < 0 {
		return c, fmt.Errorf("namenode timeout %v %w: give a positive one", c.Timeout, meta.ErrInvalid)
	}
	return c.filled()
}

// webURL is http or https, and HOST:PORT.
func webURL(addr string) (*url.URL, error) {
	u, err := url.Parse(addr)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Port() == "" || u.Scheme+"://"+u.Host != addr {
		return nil, fmt.Errorf("WebHDFS %q %w: give http or https, and HOST:PORT, as in dfs.namenode.https-address", addr, meta.ErrInvalid)
	}
	return u, nil
}

func (c Config) filled() (Config, error) {
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.User == "" && c.Kerberos == nil {
		u, err := user.Current()
		if err != nil {
			return c, fmt.Errorf("namenode user: %w; name one", err)
		}
		c.User = u.Username
	}
	return c, nil
}

// There are two ways to a namenode: RPC at each of Addresses, and WebHDFS at each of
// Web. A way is an index into the ones and then the others.

func (c Config) ways() int { return len(c.Addresses) + len(c.Web) }

func (c Config) address(way int) string {
	if n := len(c.Addresses); way >= n {
		return c.Web[way-n]
	}
	return c.Addresses[way]
}

// share is the part of a call's time that one way may take.
func (c Config) share() time.Duration { return c.Timeout / time.Duration(c.ways()) }
