package namenode

import (
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"rankfs/fetch/hdfs/message"
	"rankfs/meta"
)

// States of a SASL exchange, as in RpcSaslProto.
const (
	saslSuccess protoreflect.EnumNumber = iota
	saslNegotiate
	saslInitiate
	saslChallenge
	saslResponse
	saslWrap
)

// maxGreeting bounds a message that a namenode sends before it is authenticated.
const maxGreeting = 1 << 20

// readSASL reads a reply in the state that is due.
func readSASL(r io.Reader, due protoreflect.EnumNumber) (proto.Message, error) {
	b, err := readFrame(r, maxGreeting)
	if err != nil {
		return nil, err
	}
	return parseSASL(b, due)
}

func parseSASL(b []byte, due protoreflect.EnumNumber) (proto.Message, error) {
	id, answer, err := parseReply(b)
	if err == nil {
		err = answer.err
	}
	if err != nil {
		return nil, err
	}
	resp := message.New("common.RpcSaslProto", nil)
	if id != saslID {
		return nil, fmt.Errorf("reply %w: it is for call %d where SASL is due; does the namenode use Kerberos?", meta.ErrCorrupt, id)
	}
	if _, err := shift(answer.body, resp); err != nil {
		return nil, err
	}
	if state := message.Get(resp, "state").Enum(); state != due {
		return nil, fmt.Errorf("reply %w: SASL state %d where %d is due; does the namenode use Kerberos?", meta.ErrCorrupt, state, due)
	}
	return resp, nil
}
