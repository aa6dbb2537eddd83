package namenode

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"rankfs/meta"
)

// defaultPort is where a namenode listens if an address does not say it.
const defaultPort = "8020"

// FromConf reads core-site.xml and hdfs-site.xml of a directory, such as
// /etc/hadoop/conf, and returns how to reach the namenodes of an authority:
// HOST:PORT, the name of a nameservice, or fs.defaultFS's if it is empty. The
// directory may be empty if the authority is a HOST:PORT.
func FromConf(dir, authority string) (Config, error) {
	conf, err := readConf(dir)
	if err != nil {
		return Config{}, err
	}
	hosts, err := conf.namenodes(authority)
	if err != nil {
		if dir == "" {
			return Config{}, fmt.Errorf("hadoop configuration: %w", err)
		}
		return Config{}, fmt.Errorf("hadoop configuration %q: %w", dir, err)
	}
	c := Config{
		Named: conf.names(authority),
		Data: Data{
			UseHostname: conf.is("dfs.client.use.datanode.hostname"),
			Protection:  conf.list("dfs.data.transfer.protection"),
			Encrypt:     conf.is("dfs.encrypt.data.transfer"),
			Socket:      conf.get("dfs.domain.socket.path"),
			ByFile:      conf.is("dfs.client.read.shortcircuit"),
		},
	}
	if strings.EqualFold(conf.get("hadoop.security.authentication"), "kerberos") {
		c.Kerberos = &Kerberos{
			Service:    conf.get("dfs.namenode.kerberos.principal"),
			Protection: conf.list("hadoop.rpc.protection"),
		}
	}
	for _, h := range hosts {
		c.Addresses = append(c.Addresses, h.addr)
		if h.web != "" && c.Kerberos.allowsWeb(h.web) {
			c.Web = append(c.Web, h.web)
		}
	}
	return c, nil
}

// CheckConf says why FromConf could make nothing of a directory, whatever the authority.
func CheckConf(dir string) error {
	_, err := readConf(dir)
	return err
}

// A conf is the settings of a Hadoop configuration.
type conf map[string]string

const maxConf = 4 << 20 // bytes of a file; real ones have 50 KiB

func readConf(dir string) (conf, error) {
	c := conf{}
	if dir == "" {
		return c, nil
	}
	found := false
	for _, name := range []string{"core-site.xml", "hdfs-site.xml"} {
		switch err := c.read(filepath.Join(dir, name)); {
		case err == nil:
			found = true
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("hadoop configuration: %w", err)
		}
	}
	if !found {
		return nil, meta.Worded(meta.ErrNotExist, "hadoop configuration: %s has neither core-site.xml nor hdfs-site.xml; name the directory that has them, often /etc/hadoop/conf", dir)
	}
	return c, nil
}

// read adds the settings of a file; later ones count.
func (c conf) read(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConf+1))
	if err != nil {
		return err
	}
	if len(b) > maxConf {
		return fmt.Errorf("%s %w: it has more than %d bytes", name, meta.ErrInvalid, maxConf)
	}
	var list struct {
		Property []struct {
			Name  string `xml:"name"`
			Value string `xml:"value"`
		} `xml:"property"`
	}
	if err := xml.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("%s %w: %v", name, meta.ErrInvalid, err)
	}
	for _, p := range list.Property {
		c[strings.TrimSpace(p.Name)] = strings.TrimSpace(p.Value)
	}
	return nil
}

// get is a setting with the settings that it names as ${other} in their place.
func (c conf) get(name string) string {
	const maxDepth = 20 // as in Hadoop
	value := c[name]
	for range maxDepth {
		head, rest, found := strings.Cut(value, "${")
		inner, tail, closed := strings.Cut(rest, "}")
		with, known := c[inner]
		if !found || !closed || !known || len(value) > maxPath {
			return value
		}
		value = head + with + tail
	}
	return value
}

func (c conf) is(name string) bool { return strings.EqualFold(c.get(name), "true") }

// list is a setting that has several values with commas between them.
func (c conf) list(name string) []string {
	var out []string
	for _, v := range strings.Split(c.get(name), ",") {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	return out
}

// A host is one that a namenode runs on.
type host struct {
	addr string // HOST:PORT of its RPC
	web  string // of its WebHDFS; empty if that is not said
}

func (c conf) namenodes(authority string) ([]host, error) {
	own, err := c.defaultFS()
	if authority == "" {
		if err != nil {
			return nil, err
		}
		authority = own
	}
	if names := c.list("dfs.ha.namenodes." + authority); len(names) > 0 {
		return c.ofNameservice(authority, names)
	}
	if addr := c.get("dfs.namenode.rpc-address." + authority); addr != "" {
		return []host{c.host(addr, "."+authority)}, nil
	}
	if strings.Contains(authority, "/") || strings.Contains(authority, "@") {
		return nil, fmt.Errorf("authority %q %w: give HOST:PORT or a nameservice", authority, meta.ErrInvalid)
	}
	if _, port, err := net.SplitHostPort(withPort(authority)); err == nil {
		if n, err := net.LookupPort("tcp", port); err != nil || n == 0 {
			return nil, meta.Worded(meta.ErrInvalid, "namenode %s: %q is not a port from 1 to 65535; give HOST:PORT or a nameservice", authority, port)
		}
	}
	if err == nil && withPort(own) == withPort(authority) {
		return []host{c.host(authority, "")}, nil
	}
	return []host{{addr: withPort(authority)}}, nil
}

// names reports whether an authority is the configuration's default, a nameservice of it,
// or a namenode of one of those.
func (c conf) names(authority string) bool {
	own, _ := c.defaultFS()
	if authority == "" || authority == own || own != "" && withPort(own) == withPort(authority) {
		return true
	}
	for key := range c {
		service, isAddress := strings.CutPrefix(key, "dfs.namenode.rpc-address.")
		nameservice, isService := strings.CutPrefix(key, "dfs.ha.namenodes.")
		if isService && nameservice == authority || isAddress && (service == authority || withPort(c.get(key)) == withPort(authority)) {
			return true
		}
	}
	return false
}

// host is the one whose settings have names that end in keys.
func (c conf) host(addr, keys string) host {
	h := host{addr: withPort(addr)}
	scheme := "http"
	if strings.Contains(strings.ToUpper(c.get("dfs.http.policy")), "HTTPS") {
		scheme = "https"
	}
	name, port, err := net.SplitHostPort(c.get("dfs.namenode." + scheme + "-address" + keys))
	if err != nil {
		return h
	}
	if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() {
		name, _, _ = net.SplitHostPort(h.addr)
	}
	h.web = scheme + "://" + net.JoinHostPort(name, port)
	return h
}

func (c conf) defaultFS() (string, error) {
	value := c.get("fs.defaultFS")
	if value == "" {
		value = c.get("fs.default.name") // before Hadoop 2
	}
	if value == "" {
		return "", fmt.Errorf("fs.defaultFS %w: it is not set; give the directory of core-site.xml by --hadoop-conf or HADOOP_CONF_DIR, or name the namenode, as hdfs://HOST:PORT/PATH", meta.ErrInvalid)
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "hdfs" || u.Host == "" {
		return "", fmt.Errorf("fs.defaultFS %q %w: it names no HDFS; give HOST:PORT or a nameservice", value, meta.ErrInvalid)
	}
	return u.Host, nil
}

func (c conf) ofNameservice(service string, names []string) ([]host, error) {
	var out []host
	for _, n := range names {
		keys := "." + service + "." + n
		key := "dfs.namenode.rpc-address" + keys
		addr := c.get(key)
		if addr == "" {
			return nil, fmt.Errorf("%s %w: it is missing, but dfs.ha.namenodes.%s names %q", key, meta.ErrInvalid, service, n)
		}
		out = append(out, c.host(addr, keys))
	}
	return out, nil
}

func withPort(addr string) string {
	if _, _, err := net.SplitHostPort(addr); err == nil {
		return addr
	}
	return net.JoinHostPort(strings.Trim(addr, "[]"), defaultPort)
}
