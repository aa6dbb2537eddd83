package trust_test

import (
	"io"
	"net"
	"testing"

	"rankfs/meta/trust"
)

// Both ends of a connection that is let in and closed.
func BenchmarkDial(b *testing.B) {
	c := newCluster(b)
	one, two := c.node(b, 1), c.node(b, 2)
	two.echo(b, trust.Call)
	b.ReportAllocs()
	for b.Loop() {
		conn, err := one.Dial(b.Context(), two.addr(), two.id, trust.Call)
		if err != nil {
			b.Fatal(err)
		}
		conn.Close()
	}
}

// Bytes of one connection, both ends on this machine.
func BenchmarkStream(b *testing.B) {
	c := newCluster(b)
	one, two := c.node(b, 1), c.node(b, 2)
	l := two.Listener(trust.Data)
	conn, err := one.Dial(b.Context(), two.addr(), two.id, trust.Data)
	if err != nil {
		b.Fatal(err)
	}
	other, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	stream(b, conn, other)
}

// The same without TLS.
func BenchmarkStreamPlain(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	other, err := l.Accept()
	if err != nil {
		b.Fatal(err)
	}
	stream(b, conn, other)
}

func stream(b *testing.B, from, to net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := make([]byte, 1<<20)
		for {
			if _, err := io.ReadFull(to, buf); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 1<<20)
	b.SetBytes(1 << 20)
	for b.Loop() {
		if _, err := from.Write(buf); err != nil {
			b.Fatal(err)
		}
	}
	from.Close()
	<-done
	to.Close()
}
