package datanode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/protobuf/proto"
)

// A Guard is what both ends of a connection agree on before a block is asked
// for. Of what a datanode offers, the best is taken.
type Guard struct {
	// Protection is the least that will do: authentication, integrity or
	// privacy; empty if nothing has to be agreed on.
	Protection string
	// Key is the DataEncryptionKeyProto that proves who we are where a cluster
	// encrypts; nil where the block's token does.
	Key proto.Message
}

func (c *Client) guard(ctx context.Context) (Guard, error) {
	if c.config.Guard == nil {
		return Guard{}, nil
	}
	return c.config.Guard(ctx)
}

// at is the guard towards an address. Nobody but root can open a port below
// 1024, so that Hadoop takes who listens there for a datanode and asks no more,
// unless it has to encrypt.
func (g Guard) at(addr string) Guard {
	_, port, err := net.SplitHostPort(addr)
	if n, _ := strconv.Atoi(port); err == nil && n < 1024 && g.Key == nil {
		return Guard{}
	}
	return g
}

// explain says of an error what of the guard may have brought it about: a
// datanode tells only its log.
func (g Guard) explain(err error) error {
	const setting = "dfs.data.transfer.protection"
	switch text := err.Error(); {
	case strings.Contains(text, "invalid qop"):
		return fmt.Errorf("it does not offer %s: %w; make %s the same on both sides", g.Protection, err, setting)
	case strings.Contains(text, "rspauth"), strings.Contains(text, "ERROR_ACCESS_TOKEN"):
		return fmt.Errorf("%w: it refuses the block's token or the encryption key: %w; its log says why", syscall.EACCES, err)
	case !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET):
		return err
	case g.Protection == "":
		return fmt.Errorf("it hangs up: %w; if it has a %s, give the Hadoop configuration that says so", err, setting)
	}
	return fmt.Errorf("it hangs up: %w; does it have the %s of the Hadoop configuration, which allows %s?", err, setting, g.Protection)
}
