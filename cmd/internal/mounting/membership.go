package mounting

import (
	"net"
	"os"
	"strings"

	"rankfs/cmd/internal/failure"
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

// tokenVariable hands a token to the daemon of a background mount: its arguments
// and the mount table, which all users can read, do not have it.
const tokenVariable = "RANKFS_TOKEN"

// complete checks the options, and finds the token.
func (m membership) complete() (membership, error) {
	if m.host != "" && (!meta.IsHost(m.host) || meta.SameHost(m.host, "localhost")) {
		return m, meta.Worded(meta.ErrInvalid, "host %q is not what others can call this host, as node1.example.com", m.host)
	}
	for name, address := range map[string]string{"listen": m.listen, "join": m.join} {
		host, port, err := net.SplitHostPort(address)
		if address != "" && (err != nil || name == "join" && host == "") {
			return m, meta.Worded(meta.ErrInvalid, "--%s %q is not HOST:PORT, as node1:7420", name, address)
		}
		if n, err := net.LookupPort("tcp", port); err != nil || n == 0 && address != "" {
			return m, badPort(name, address, port)
		}
	}
	if m.token != "" && m.tokenFile != "" {
		return m, meta.Worded(meta.ErrInvalid, "use --token or --token-file, not both")
	}
	if m.tokenFile != "" {
		text, err := os.ReadFile(m.tokenFile)
		if err != nil {
			return m, failure.Unread("token-file", m.tokenFile, err)
		}
		if m.token = strings.TrimSpace(string(text)); m.token == "" {
			return m, meta.Worded(meta.ErrInvalid, "--token-file %s: it is empty; write to it what this printed on an operator: rankfs token create", m.tokenFile)
		}
		m.tokenFile = ""
	}
	if m.token == "" {
		m.token = os.Getenv(tokenVariable)
	}
	return m, nil
}

// badPort refuses a port. At 0 the kernel would choose one, and another after a restart,
// where the nodes that were told the first one look in vain.
func badPort(option, address, port string) error {
	err := meta.Worded(meta.ErrInvalid, "--%s %q: %q is not a port from 1 to 65535", option, address, port)
	if option == "join" {
		return err
	}
	return failure.Hint(err, "other nodes look for this one at the same port after a restart: give one, as node1:7420")
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
