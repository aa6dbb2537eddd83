package namenode

import (
	"fmt"

	_ "github.com/colinmarc/hdfs/v2" // registers Hadoop's messages
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Hadoop's messages are types of an internal package of hdfs/v2, and a second
// copy of them could not be registered. They are made by name instead.

type fields map[protoreflect.Name]any

// message makes one of Hadoop's messages, such as hdfs.GetListingRequestProto.
// The names and types in it are ours: a wrong one is a defect.
func message(name string, values fields) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("hadoop." + name))
	if err != nil {
		panic(fmt.Sprintf("message %s: %v", name, err))
	}
	m := t.New().Interface()
	for name, value := range values {
		set(m, name, value)
	}
	return m
}

func set(m proto.Message, name protoreflect.Name, value any) {
	if sub, ok := value.(proto.Message); ok {
		value = sub.ProtoReflect()
	}
	r := m.ProtoReflect()
	r.Set(r.Descriptor().Fields().ByName(name), protoreflect.ValueOf(value))
}

func field(m proto.Message, name protoreflect.Name) protoreflect.Value {
	r := m.ProtoReflect()
	return r.Get(r.Descriptor().Fields().ByName(name))
}

// part is a message that is a field of m, or nil if m leaves it out.
func part(m proto.Message, name protoreflect.Name) proto.Message {
	r := m.ProtoReflect()
	f := r.Descriptor().Fields().ByName(name)
	if !r.Has(f) {
		return nil
	}
	return r.Get(f).Message().Interface()
}

// add puts messages into a list of m's.
func add(m proto.Message, name protoreflect.Name, list []proto.Message) {
	r := m.ProtoReflect()
	to := r.Mutable(r.Descriptor().Fields().ByName(name)).List()
	for _, one := range list {
		to.Append(protoreflect.ValueOf(one.ProtoReflect()))
	}
}

// as is m as the type of like, which cannot be written here.
func as[T proto.Message](m proto.Message, like T) T {
	t, _ := m.(T)
	return t
}
