package datanode

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/protobuf/proto"

	"rankfs/fetch/hdfs/message"
)

// A Guard is the protection that both ends of a connection have to agree on before a
// block is asked for.
type Guard struct {
	// Allowed are the allowed ones of authentication, integrity and privacy, best
	// first; empty if nothing has to be agreed on.
	Allowed []string
	// Key is the DataEncryptionKeyProto that authenticates this client where a
	// cluster encrypts; nil where the block's token does.
	Key proto.Message
}

// at is the guard towards an address. Only root can open a port below 1024, so Hadoop
// trusts a server there to be a datanode, and skips the agreement unless it has to
// encrypt.
func (g Guard) at(addr string) Guard {
	_, port, err := net.SplitHostPort(addr)
	if n, _ := strconv.Atoi(port); err == nil && n < 1024 && g.Key == nil {
		return Guard{}
	}
	return g
}

// A token is a namenode's permission to read a block.
type token interface {
	GetIdentifier() []byte
	GetPassword() []byte
}

// proof is the name and password of this client for a datanode.
func (g Guard) proof(t token) proof {
	text := base64.StdEncoding.EncodeToString
	if g.Key == nil {
		return proof{text(t.GetIdentifier()), text(t.GetPassword())}
	}
	id := int32(message.Get(g.Key, "keyId").Uint()) // Java's, which has a sign
	name := fmt.Sprintf("%d %s %s", id, message.Get(g.Key, "blockPoolId").String(), text(message.Get(g.Key, "nonce").Bytes()))
	return proof{name, text(message.Get(g.Key, "encryptionKey").Bytes())}
}

// explain adds to an error how the guard may have caused it: a datanode gives the
// reason only in its log.
func (g Guard) explain(err error) error {
	switch {
	case strings.Contains(err.Error(), "ERROR_ACCESS_TOKEN"):
		return fmt.Errorf("%w: it refuses the block's token: %w; its log says why", syscall.EACCES, err)
	case !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET):
		return err
	case len(g.Allowed) == 0:
		return fmt.Errorf("it hangs up: %w; if it has a %s, give the Hadoop configuration that says so", err, setting)
	}
	return fmt.Errorf("it hangs up: %w; is its %s %s, as in the Hadoop configuration?", err, setting, strings.Join(g.Allowed, " or "))
}
