package group

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"rankfs/meta"
	"rankfs/meta/state"
	"rankfs/meta/trust"
)

// An application is what a node that wants in sends: a request for a
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
	conn, pem, err := trust.DialJoin(ctx, at, token.Pin(), nil, now)
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
	authority, err := trust.Adopt(dir, pem, token.Pin())
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
		return nil, fmt.Errorf("no answer: %w: %w", meta.ErrUnavailable, err)
	}
	if answer.Removed {
		return nil, trust.ErrRemoved
	}
	if answer.Error != nil {
		return nil, answer.Error
	}
	return answer.Certificate, nil
}

// An office takes applications.
type office struct {
	group    *Group
	listener net.Listener
	done     sync.WaitGroup
}

func newOffice(l net.Listener, g *Group) *office {
	o := &office{group: g, listener: l}
	o.done.Go(o.serve)
	return o
}

func (o *office) close() error {
	err := o.listener.Close()
	o.done.Wait()
	return err
}

// serve takes them one by one: the port bounds how many wait, and for how long.
func (o *office) serve() {
	for {
		conn, err := o.listener.Accept()
		if err != nil {
			return
		}
		o.done.Go(func() { o.take(conn) })
	}
}

func (o *office) take(conn net.Conn) {
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), o.group.times.patience)
	defer cancel()
	var a application
	var answer admittance
	err := json.NewDecoder(io.LimitReader(conn, maxApplication)).Decode(&a)
	if err == nil {
		answer.Certificate, err = o.group.certify(ctx, a)
	} else {
		err = fmt.Errorf("application %w: %w", meta.ErrInvalid, err)
	}
	if err != nil {
		answer.Error, answer.Removed = meta.Tell(err), o.group.wasRemoved(a)
		o.group.config.Log.Warn("node not admitted", "from", conn.RemoteAddr(), "cause", err)
	}
	_ = json.NewEncoder(conn).Encode(answer)
}

// certify has the leader admit a node.
func (g *Group) certify(ctx context.Context, a application) (certificate []byte, err error) {
	err = g.AskLeader(ctx, callAdmit, a, &certificate)
	return certificate, err
}

// wasRemoved reports whether a node that applies was taken out of the cluster.
func (g *Group) wasRemoved(a application) bool {
	r, err := trust.ParseRequest(a.Request)
	return err == nil && g.config.Machine.Removed(r.Node)
}

// serveAdmit enters a node, or finds that it is entered, and signs for it.
func (g *Group) serveAdmit(ctx context.Context, from string, request json.RawMessage) (any, error) {
	a, err := decode[application](request)
	if err != nil {
		return nil, err
	}
	r, err := trust.ParseRequest(a.Request)
	if err != nil {
		return nil, err
	}
	n := state.Node{ID: r.Node, Host: r.Host, Addr: a.Addr, Key: trust.KeyID(r.Key)}
	if known, ok := g.config.Machine.Node(r.Node); !ok || known.Key != n.Key {
		if err := g.admit(ctx, a, n); err != nil {
			return nil, fmt.Errorf("node %s: %w", r.Node, err)
		}
		g.seen.heard(n.ID, time.Now())
		g.config.Log.Info("node admitted", "node", n.ID, "host", n.Host, "addr", n.Addr)
	} else if known.Addr != n.Addr && g.vouched(from, a, n) {
		if _, err := g.apply(ctx, state.Sender{Node: n.ID}, &state.Move{ID: n.ID, Addr: n.Addr}); err != nil {
			return nil, err
		}
	}
	node, _ := g.config.Machine.Node(r.Node)
	return g.config.Authority.Sign(r, roleOf(node), g.config.Now(), 0)
}

// vouched reports whether an application says where its node is. Another node may
// have passed it on, and changed it, or pass on what it has seen once; but a proof
// is of the address too.
func (g *Group) vouched(from string, a application, n state.Node) bool {
	if from == n.ID || g.config.Machine.Version() < state.Signed {
		return true
	}
	hash, err := a.token(state.Signed)
	_, known := g.config.Machine.Token(hash)
	return err == nil && known
}

// admit enters a node by the token that it shows.
func (g *Group) admit(ctx context.Context, a application, n state.Node) error {
	version := g.config.Machine.Version()
	hash, err := a.token(version)
	if err != nil {
		return err
	}
	c := &state.Admit{TokenHash: hash, Node: n}
	if version >= state.Signed {
		c.Speaks = a.Speaks
	}
	_, err = g.apply(ctx, g.itself(), c)
	return err
}

// roleOf is the role of a node as its certificate is to say it.
func roleOf(n state.Node) trust.Role {
	switch n.Role {
	case state.Member:
		return trust.RoleMember
	case state.Operator:
		return trust.RoleOperator
	}
	return trust.RoleNode
}

// found makes this node the first of a new cluster.
func (g *Group) found(ctx context.Context) error {
	request, err := g.config.Identity.Request()
	if err != nil {
		return err
	}
	r, err := trust.ParseRequest(request)
	if err != nil {
		return err
	}
	first := g.config.Self
	first.Key = trust.KeyID(r.Key)
	a := g.config.Authority
	_, err = g.do(ctx, g.itself(), &state.Found{Cluster: state.Cluster{ID: a.Cluster(), CA: a.Fingerprint().String()}})
	if err == nil {
		c := &state.Admit{Node: first}
		if g.config.Machine.Version() >= state.Signed {
			c.Speaks = g.config.Machine.Speaks()
		}
		_, err = g.do(ctx, g.itself(), c)
	}
	return err
}

// renew gets a new certificate when it is time.
func (g *Group) renew(ctx context.Context) {
	said := ""
	for {
		wait := g.times.renew
		if g.config.Identity.Due(g.config.Now()) {
			err := g.renewOnce(ctx)
			if err != nil {
				wait = g.times.look // others may be getting theirs just now
			}
			if now := fmt.Sprint(err); err != nil && ctx.Err() == nil && now != said {
				said = now
				g.config.Log.Warn("certificate not renewed yet", "expires", g.config.Identity.Until(), "cause", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-g.home.removed:
			return
		case <-time.After(wait):
		}
	}
}

func (g *Group) renewOnce(ctx context.Context) error {
	request, err := g.config.Identity.Request()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, g.times.patience)
	defer cancel()
	a := application{Request: request, Addr: g.config.Self.Addr}
	var certificate []byte
	if now := g.config.Now(); now.Before(g.config.Identity.Until()) {
		certificate, err = g.certify(ctx, a)
	} else {
		certificate, err = g.recertify(ctx, a, now)
	}
	if err != nil {
		return err
	}
	return g.config.Identity.Renew(certificate, g.config.Authority, g.config.Now())
}

// recertify is for a node that was off for longer than its certificate lasts, so that
// no other node talks to it. A node with the authority's key signs for itself. Any
// other applies as a node that joins does, without a token: the cluster knows its key.
func (g *Group) recertify(ctx context.Context, a application, now time.Time) (certificate []byte, err error) {
	authority := g.config.Authority
	if authority.CanSign() {
		r, err := trust.ParseRequest(a.Request)
		if err != nil {
			return nil, err
		}
		return authority.Sign(r, g.config.Identity.Role(), now, 0)
	}
	err = fmt.Errorf("certificate of this node: %w: it has expired, and no other node is known; remove the state directory and join anew", meta.ErrDenied)
	for _, addr := range g.addresses() {
		certificate, err = g.reapply(ctx, addr, a, now)
		if g.refused(err); err == nil || errors.Is(err, trust.ErrRemoved) {
			break
		}
	}
	return certificate, err
}

func (g *Group) reapply(ctx context.Context, addr string, a application, now time.Time) ([]byte, error) {
	conn, _, err := trust.DialJoin(ctx, addr, g.config.Authority.Fingerprint(), g.config.Machine.Admits, now)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	return apply(conn, a)
}
