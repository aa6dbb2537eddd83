package namenode

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"rankfs/fetch/hdfs/message"
	"rankfs/meta"
)

// greet tells a namenode the user of a new connection. The wrapping that it returns is
// nil if packets are sent unprotected.
func (u *identity) greet(ctx context.Context, nc net.Conn, addr string) (*wrapping, error) {
	if u.config.Kerberos != nil {
		return u.greetKerberos(ctx, nc, addr)
	}
	user, realUser := u.config.User, ""
	if u.config.ActFor != "" {
		user, realUser = u.config.ActFor, u.config.User
	}
	b, err := packet(u.id, contextID, connectionContext(user, realUser))
	if err != nil {
		return nil, err
	}
	_, err = nc.Write(append(preamble(authNone), b...))
	return nil, err
}

// greetKerberos authenticates this client by SASL's GSSAPI mechanism (RFC 4752). The
// seal on the namenode's first message proves that it is the right one: the key is
// new, and went to the namenode in a ticket that no other can read.
func (u *identity) greetKerberos(ctx context.Context, nc net.Conn, addr string) (*wrapping, error) {
	service, realm, err := u.config.Kerberos.service(addr)
	if err != nil {
		return nil, final(err)
	}
	if _, err := nc.Write(preamble(authSASL)); err != nil {
		return nil, err
	}
	x := exchange{id: u.id, nc: nc}
	offer, err := x.ask(saslNegotiate, nil, nil, saslNegotiate)
	if err != nil {
		return nil, err
	}
	method, err := kerberosOf(offer, service)
	if err != nil {
		return nil, final(err)
	}
	k, err := u.tickets.key(ctx, service, realm)
	if err != nil {
		return nil, err
	}
	u.setWho(k.who)
	challenge, err := x.ask(saslInitiate, k.token, method, saslChallenge)
	if err != nil {
		return nil, err
	}
	w, answer, err := u.agree(k.seal, message.Get(challenge, "token").Bytes())
	if err != nil {
		return nil, err
	}
	if _, err := x.ask(saslResponse, answer, nil, saslSuccess); err != nil {
		return nil, err
	}
	return w, u.introduce(nc, w, k.who)
}

// introduce sends the connection's context, which a namenode checks against
// the ticket.
func (u *identity) introduce(nc net.Conn, w *wrapping, who string) error {
	if u.config.ActFor != "" {
		who = u.config.ActFor
	}
	b, err := packet(u.id, contextID, connectionContext(who, ""))
	if err == nil && w != nil {
		b, err = w.wrap(b)
	}
	if err == nil {
		_, err = nc.Write(b)
	}
	return err
}

// An exchange is the messages that go to and fro until both sides trust each
// other.
type exchange struct {
	id []byte // of the client
	nc net.Conn
}

// ask sends a state with a token and, once, the chosen method, and waits for a
// reply in the state that is due.
func (x exchange) ask(state protoreflect.EnumNumber, token []byte, method proto.Message, due protoreflect.EnumNumber) (proto.Message, error) {
	req := message.New("common.RpcSaslProto", message.Fields{"state": state})
	if token != nil {
		message.Set(req, "token", token)
	}
	if method != nil {
		r := req.ProtoReflect()
		r.Mutable(r.Descriptor().Fields().ByName("auths")).List().Append(protoreflect.ValueOf(method.ProtoReflect()))
	}
	b, err := packet(x.id, saslID, req)
	if err != nil {
		return nil, err
	}
	if _, err := x.nc.Write(b); err != nil {
		return nil, err
	}
	return readSASL(x.nc, due)
}

// kerberosOf returns the Kerberos entry among the offered ways to log in.
func kerberosOf(offer proto.Message, service string) (proto.Message, error) {
	list := message.Get(offer, "auths").List()
	for i := range list.Len() {
		m := list.Get(i).Message().Interface()
		if message.Get(m, "method").String() != "KERBEROS" || message.Get(m, "mechanism").String() != "GSSAPI" {
			continue
		}
		if is := message.Get(m, "protocol").String() + "/" + message.Get(m, "serverId").String(); is != service {
			return nil, fmt.Errorf("principal %q %w: the namenode at this address calls itself %q; make dfs.namenode.kerberos.principal or the address agree",
				service, meta.ErrInvalid, clean(is))
		}
		return m, nil
	}
	return nil, fmt.Errorf("kerberos %w: the namenode does not offer it; is it of another cluster?", meta.ErrInvalid)
}

// agree reads the namenode's first sealed message, which offers guards, and returns
// the wrapping of later packets and the sealed answer to send.
func (u *identity) agree(s *seal, token []byte) (*wrapping, []byte, error) {
	offer, err := s.in(token, false)
	if err != nil {
		return nil, nil, err
	}
	if len(offer) != 4 {
		return nil, nil, fmt.Errorf("offer of guards %w: it has %d bytes", meta.ErrCorrupt, len(offer))
	}
	g, err := u.config.Kerberos.choose(offer[0])
	if err != nil {
		return nil, nil, final(err)
	}
	choice, w := []byte{byte(g), 0xff, 0xff, 0xff}, &wrapping{id: u.id, seal: s, secret: g == privacy}
	if g == authentication {
		choice, w = []byte{byte(g), 0, 0, 0}, nil
	}
	answer, err := s.out(choice, false)
	return w, answer, err
}
