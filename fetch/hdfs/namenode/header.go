package namenode

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"rankfs/fetch/hdfs/message"
)

const (
	protocol        = "org.apache.hadoop.hdfs.protocol.ClientProtocol"
	protocolVersion = 1

	// Call ids below zero are not calls.
	contextID = -3
	saslID    = -33

	authNone = 0
	authSASL = 0xdf
)

// preamble opens a connection: version 9 of the protocol, service class 0.
func preamble(auth byte) []byte { return []byte{'h', 'r', 'p', 'c', 9, 0, auth} }

// packet is a frame for the call id.
func packet(client []byte, id int32, messages ...proto.Message) ([]byte, error) {
	header := message.New("common.RpcRequestHeaderProto", message.Fields{
		"rpcKind":  protoreflect.EnumNumber(2), // protocol buffers
		"rpcOp":    protoreflect.EnumNumber(0), // the only packet of the call
		"callId":   id,
		"clientId": client,
	})
	return frame(append([]proto.Message{header}, messages...)...)
}

// methodHeader says which method the request behind it is for.
func methodHeader(method string) proto.Message {
	return message.New("common.RequestHeaderProto", message.Fields{
		"methodName":                 method,
		"declaringClassProtocolName": protocol,
		"clientProtocolVersion":      uint64(protocolVersion),
	})
}

// connectionContext names the user of a connection. realUser is the one who acts for
// user, or empty.
func connectionContext(user, realUser string) proto.Message {
	who := message.Fields{"effectiveUser": user}
	if realUser != "" {
		who["realUser"] = realUser
	}
	return message.New("common.IpcConnectionContextProto", message.Fields{
		"userInfo": message.New("common.UserInformationProto", who),
		"protocol": protocol,
	})
}

// A reply is the outcome of a call: the message as bytes, or why there is none.
type reply struct {
	body []byte
	err  error
}

// parseReply takes a reply's header off. An error means that the connection has to be
// closed: a frame is broken, or the namenode ends the connection.
func parseReply(b []byte) (id int32, r reply, err error) {
	header := message.New("common.RpcResponseHeaderProto", nil)
	rest, err := shift(b, header)
	if err != nil {
		return 0, reply{}, err
	}
	id = int32(message.Get(header, "callId").Uint())
	switch message.Get(header, "status").Enum() {
	case 0:
		return id, reply{body: rest}, nil
	case 1:
		return id, reply{err: remoteErrorOf(header)}, nil
	default:
		return id, reply{}, remoteErrorOf(header)
	}
}
