// Package message makes Hadoop's messages, and reads their fields, by name: their types are
// of an internal package of hdfs/v2, and a second copy of them could not be registered.
package message

import (
	"fmt"

	_ "github.com/colinmarc/hdfs/v2" // registers Hadoop's messages
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Fields are the fields that a message is made with.
type Fields map[protoreflect.Name]any

// New makes one of Hadoop's messages, such as hdfs.GetListingRequestProto.
// The names and types in it are ours: a wrong one is a defect.
func New(name string, values Fields) proto.Message {
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName("hadoop." + name))
	if err != nil {
		panic(fmt.Sprintf("message %s: %v", name, err))
	}
	m := t.New().Interface()
	for name, value := range values {
		Set(m, name, value)
	}
	return m
}

// Set sets a field of m.
func Set(m proto.Message, name protoreflect.Name, value any) {
	if sub, ok := value.(proto.Message); ok {
		value = sub.ProtoReflect()
	}
	r := m.ProtoReflect()
	r.Set(r.Descriptor().Fields().ByName(name), protoreflect.ValueOf(value))
}

// Get is a field of m.
func Get(m proto.Message, name protoreflect.Name) protoreflect.Value {
	r := m.ProtoReflect()
	return r.Get(r.Descriptor().Fields().ByName(name))
}

// Part is a message that is a field of m, or nil if m leaves it out.
func Part(m proto.Message, name protoreflect.Name) proto.Message {
	r := m.ProtoReflect()
	f := r.Descriptor().Fields().ByName(name)
	if !r.Has(f) {
		return nil
	}
	return r.Get(f).Message().Interface()
}

// Add puts messages into a list of m's.
func Add(m proto.Message, name protoreflect.Name, list []proto.Message) {
	r := m.ProtoReflect()
	to := r.Mutable(r.Descriptor().Fields().ByName(name)).List()
	for _, one := range list {
		to.Append(protoreflect.ValueOf(one.ProtoReflect()))
	}
}
