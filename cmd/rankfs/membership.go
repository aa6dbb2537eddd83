package main

import (
	"net"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"rankfs/meta"
)

// A membership is which cluster a mount belongs to, and where others reach it.
type membership struct {
	host      string // what others call this host; empty: as it calls itself
	listen    string // HOST:PORT
	join      string // HOST:PORT of a node that is there already
	token     string
	tokenFile string
}

// tokenVariable hands a token to the daemon of a background mount: neither its
// arguments nor the mount table, which everybody can read, have it.
const tokenVariable = "RANKFS_TOKEN"

// flags lets m be set by flags.
func (m *membership) flags(f *pflag.FlagSet) {
	f.StringVar(&m.host, "host", "", "be known to others as the host `NAME`, as HDFS calls it (default: its host name)")
	f.StringVar(&m.listen, "listen", "", "be reached by other nodes at `HOST:PORT` (default: on loopback only, at any port)")
	f.StringVar(&m.join, "join", "", "join the cluster of the node at `HOST:PORT`, if this node is of none")
	f.StringVar(&m.token, "token", "", "be let in by `TOKEN`, from: rankfs token create (default $"+tokenVariable+")")
	f.StringVar(&m.tokenFile, "token-file", "", "read the token from `FILE`")
}

// set takes one option of fstab, if it is of a membership. A token is not: fstab
// is for everybody to read.
func (m *membership) set(key, value string) (err error) {
	switch key {
	case "host":
		m.host = value
	case "listen":
		m.listen = value
	case "join":
		m.join = value
	case "token-file":
		m.tokenFile, err = absolute(value)
	default:
		return errUnknownOption
	}
	return err
}

// complete checks what a person wrote, and finds the token.
func (m membership) complete() (membership, error) {
	if m.host != "" && (!meta.IsHost(m.host) || meta.SameHost(m.host, "localhost")) {
		return m, failf(meta.ErrInvalid, "host %q is not what others can call this host, as node1.example.com", m.host)
	}
	for name, address := range map[string]string{"listen": m.listen, "join": m.join} {
		host, port, err := net.SplitHostPort(address)
		if address != "" && (err != nil || name == "join" && host == "") {
			return m, failf(meta.ErrInvalid, "--%s %q is not HOST:PORT, as node1:7420", name, address)
		}
		if n, err := net.LookupPort("tcp", port); err != nil || n == 0 && name == "join" && address != "" {
			return m, failf(meta.ErrInvalid, "--%s %q: %q is not a port from 1 to 65535", name, address, port)
		}
	}
	if m.token != "" && m.tokenFile != "" {
		return m, failf(meta.ErrInvalid, "use --token or --token-file, not both")
	}
	if m.tokenFile != "" {
		text, err := os.ReadFile(m.tokenFile)
		if err != nil {
			return m, unread("token-file", m.tokenFile, err)
		}
		m.token, m.tokenFile = strings.TrimSpace(string(text)), ""
	}
	if m.token == "" {
		m.token = os.Getenv(tokenVariable)
	}
	return m, nil
}

// args are those of a background mount, but for the token.
func (m membership) args() (args []string) {
	if m.host != "" {
		args = append(args, "--host="+m.host)
	}
	if m.listen != "" {
		args = append(args, "--listen="+m.listen)
	}
	if m.join != "" {
		args = append(args, "--join="+m.join)
	}
	return args
}

// environ is the environment of a background mount.
func (m membership) environ(base []string) []string {
	var env []string
	for _, v := range base {
		if !strings.HasPrefix(v, tokenVariable+"=") {
			env = append(env, v)
		}
	}
	if m.token != "" {
		env = append(env, tokenVariable+"="+m.token)
	}
	return env
}
