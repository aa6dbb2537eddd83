package namenode

import (
	"fmt"
	"io"

	"rankfs/fetch/hdfs/message"
)

// A wrapping signs or encrypts packets, as agreed on when the connection was
// opened. wrap and the reader may be used at the same time, each by one.
type wrapping struct {
	id     []byte // of the client
	seal   *seal
	secret bool // encrypts
}

// wrap is a packet that has another in it.
func (w *wrapping) wrap(b []byte) ([]byte, error) {
	token, err := w.seal.out(b, w.secret)
	if err != nil {
		return nil, fmt.Errorf("seal a request: %w", err)
	}
	return packet(w.id, saslID, message.New("common.RpcSaslProto", message.Fields{"state": saslWrap, "token": token}))
}

// reader reads the contents of the packets of r. A packet that is not sealed is an
// error.
func (w *wrapping) reader(r io.Reader) io.Reader { return &unwrapping{wrapping: w, from: r} }

type unwrapping struct {
	*wrapping
	from io.Reader
	rest []byte // of a packet
}

func (u *unwrapping) Read(p []byte) (int, error) {
	for len(u.rest) == 0 {
		b, err := readFrame(u.from, maxFrame)
		if err != nil {
			return 0, err
		}
		resp, err := parseSASL(b, saslWrap)
		if err != nil {
			return 0, fmt.Errorf("reply without a seal: %w", err)
		}
		if u.rest, err = u.seal.in(message.Get(resp, "token").Bytes(), u.secret); err != nil {
			return 0, err
		}
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}
