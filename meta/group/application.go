package group

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// An application is sent by a node that wants in: a request for a
// certificate, where it will be reached, and a proof that it has a token, or
// nothing if it was in before and its certificate has expired. A token's secret
// does not leave the node, and a node that forwards the proof cannot join with it.
//
// Token is the hash of a token of the release before, and Speaks the newest
// version of commands that the node understands.
type application struct {
	Request []byte       `json:"request"`
	Addr    string       `json:"addr"`
	Token   string       `json:"token,omitempty"`
	Proof   *trust.Proof `json:"proof,omitempty"`
	Speaks  int          `json:"speaks,omitempty"`
}

// asked is the text that a proof signs: the request's hash and the node's address.
func (a application) asked() []byte {
	sum := sha256.Sum256(a.Request)
	return append(append([]byte("rankfs join\x00"), sum[:]...), a.Addr...)
}

// present adds what shows that the node has a token.
func (a application) present(token trust.Token) application {
	if token.IsPlain() {
		hash := token.Hash()
		a.Token = hex.EncodeToString(hash[:])
		return a
	}
	proof := token.Prove(a.asked())
	a.Proof, a.Speaks = &proof, state.Version
	return a
}

// token is the hash of the token that the application shows, as the cluster keeps
// it.
func (a application) token(version int) (string, error) {
	switch {
	case version < state.Signed && a.Token != "":
		return a.Token, nil
	case version >= state.Signed && a.Proof != nil:
		hash, err := a.Proof.Token(a.asked())
		return hex.EncodeToString(hash[:]), err
	case a.Proof != nil || a.Token != "":
		return "", fmt.Errorf("token %w: it was made before or after the cluster's nodes were all upgraded; make another: rankfs token create", meta.ErrDenied)
	}
	return "", fmt.Errorf("it %w: it is not of this cluster; it needs a token, from: rankfs token create", meta.ErrDenied)
}

// An admittance is the answer: a certificate.
type admittance struct {
	Certificate []byte     `json:"certificate,omitempty"`
	Removed     bool       `json:"removed,omitempty"` // the node was
	Error       *meta.Told `json:"error,omitempty"`
}

const maxApplication = 16 << 10

// Join asks the node at an address to let this one into its cluster, and fills
// dir with what it needs there: the authority's certificate and its own. addr is
// where others will reach this node.
func Join(ctx context.Context, dir, at string, token trust.Token, id *trust.Identity, addr string, now time.Time) (*trust.Authority, error) {
	request, err := id.Request()
	if err != nil {
		return nil, err
	}
	conn, pem, err := trust.DialJoin(ctx, at, token.Authority(), nil, now)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	a := application{Request: request, Addr: addr}.present(token)
	certificate, err := apply(conn, a)
	if err != nil {
		return nil, fmt.Errorf("join at %s: %w", at, err)
	}
	authority, err := trust.Adopt(dir, pem, token.Authority())
	if err != nil {
		return nil, err
	}
	return authority, id.Renew(certificate, authority, now)
}

func apply(conn net.Conn, a application) ([]byte, error) {
	if err := json.NewEncoder(conn).Encode(a); err != nil {
		return nil, fmt.Errorf("%w: %w", meta.ErrUnavailable, err)
	}
	var answer admittance
	if err := json.NewDecoder(io.LimitReader(conn, maxApplication)).Decode(&answer); err != nil {
		return nil, meta.Worded(meta.ErrUnavailable, "no answer: %w", err)
	}
	if answer.Removed {
		return nil, trust.ErrRemoved
	}
	if answer.Error != nil {
		return nil, answer.Error
	}
	return answer.Certificate, nil
}
