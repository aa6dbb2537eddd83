package datanode_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"rankfs/fetch/hdfs/datanode"
	"rankfs/meta"
)

const challenge = `realm="0",nonce="abc",qop="auth,auth-int,auth-conf",charset=utf-8,cipher="3des,rc4",algorithm=md5-sess`

// said is a datanode's message: a status, a payload and words.
func said(status uint64, payload, words string) []byte {
	m := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), status)
	m = protowire.AppendString(protowire.AppendTag(m, 2, protowire.BytesType), payload)
	m = protowire.AppendString(protowire.AppendTag(m, 3, protowire.BytesType), words)
	return protowire.AppendBytes(nil, m)
}

// talk has the client agree with a datanode that says first, unless that is nil,
// and then is given the client's answer to the challenge.
func talk(t *testing.T, g datanode.Guard, first []byte, then func(c net.Conn, response []byte)) (net.Conn, error) {
	t.Helper()
	ours, theirs := net.Pipe()
	for _, c := range []net.Conn{ours, theirs} {
		c.SetDeadline(time.Now().Add(time.Minute))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer theirs.Close()
		if _, err := hear(theirs, 4); err != nil || first == nil {
			return
		}
		theirs.Write(first)
		if m, err := hear(theirs, 0); err == nil && then != nil {
			_, _, n := protowire.ConsumeField(m) // the status
			response, _ := protowire.ConsumeBytes(m[n+1:])
			then(theirs, response)
		}
	}()
	t.Cleanup(func() { ours.Close(); <-done })
	return g.Agree(ours, "me", "secret")
}

// hear reads the client's next message, after some bytes.
func hear(c net.Conn, skip int) ([]byte, error) {
	if _, err := io.ReadFull(c, make([]byte, skip)); err != nil {
		return nil, err
	}
	one := make([]byte, 1)
	var head []byte
	for {
		if _, err := io.ReadFull(c, one); err != nil {
			return nil, err
		}
		if head = append(head, one[0]); one[0] < 0x80 {
			break
		}
	}
	n, _ := binary.Uvarint(head)
	m := make([]byte, n)
	_, err := io.ReadFull(c, m)
	return m, err
}

func TestRefusals(t *testing.T) {
	private := datanode.Guard{Allowed: []string{"privacy"}}
	rows := []struct {
		name  string
		first []byte
		then  string // the second message; empty: it hangs up
		says  string
		is    error
	}{
		{"silent", nil, "", "EOF", io.ErrUnexpectedEOF},
		{"endless length", bytes.Repeat([]byte{0xff}, 20), "", "overflow", nil},
		{"long", protowire.AppendVarint(nil, 1<<40), "", "1099511627776 bytes", meta.ErrCorrupt},
		{"empty", []byte{0}, "", "no status", meta.ErrCorrupt},
		{"broken", []byte{2, 0xff, 0xff}, "", "no status", meta.ErrCorrupt},
		{"no such key", said(1, "", ""), "", "does not know the encryption key", syscall.EACCES},
		{"refused", said(2, "", "no\x1bway"), "", "no way", syscall.EACCES},
		{"no value", said(0, "realm", ""), "", "challenge", meta.ErrCorrupt},
		{"open quote", said(0, `realm="0`, ""), "", "challenge", meta.ErrCorrupt},
		{"escape", said(0, `realm="\"",qop="auth"`, ""), "", "challenge", meta.ErrCorrupt},
		{"not offered", said(0, `nonce="a",qop="auth"`, ""), "", "does not offer privacy", nil},
		{"another cipher", said(0, `nonce="a",qop="auth-conf",cipher="3des"`, ""), "", `by "3des" alone`, nil},
		{"hangs up", said(0, challenge, ""), "", "EOF", io.ErrUnexpectedEOF},
		{"not proven", said(0, challenge, ""), "nothing", "does not know the secret", nil},
		{"wrongly proven", said(0, challenge, ""), "rspauth=00", "does not know the secret", nil},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			_, err := talk(t, private, row.first, func(c net.Conn, _ []byte) {
				if row.then != "" {
					c.Write(said(0, row.then, ""))
				}
			})
			if err == nil || !strings.Contains(err.Error(), row.says) || row.is != nil && !errors.Is(err, row.is) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// What was sealed comes out as it was, in whatever pieces it is read, and
// nothing else does.
func TestSealed(t *testing.T) {
	messages := [][]byte{[]byte("a"), nil, bytes.Repeat([]byte("message"), 1000)}
	rows := []struct {
		name string
		bend func(i int, sealed []byte) []byte
		good int // messages
	}{
		{"as they are", func(_ int, b []byte) []byte { return b }, 3},
		{"changed", func(i int, b []byte) []byte { b[0] ^= byte(i / 2); return b }, 2},
		{"another sum", func(i int, b []byte) []byte { b[len(b)-8] ^= byte(i / 2); return b }, 2},
		{"another number", func(i int, b []byte) []byte { b[len(b)-1] ^= byte(i / 2); return b }, 2},
		{"another kind", func(i int, b []byte) []byte { b[len(b)-5] ^= byte(i / 2); return b }, 2},
		{"short", func(i int, b []byte) []byte { return b[:len(b)-i/2*6990] }, 2},
	}
	for protection, quality := range map[string]string{"integrity": "auth-int", "privacy": "auth-conf"} {
		for _, row := range rows {
			t.Run(protection+" "+row.name, func(t *testing.T) {
				c, err := talk(t, datanode.Guard{Allowed: []string{protection}}, said(0, challenge, ""), func(c net.Conn, response []byte) {
					p, err := datanode.NewPeer("me", "secret", quality, response)
					if err != nil {
						t.Error(err)
						return
					}
					c.Write(said(0, p.Shows(), ""))
					for i, m := range messages {
						b := row.bend(i, p.Next(m))
						c.Write(binary.BigEndian.AppendUint32(nil, uint32(len(b))))
						c.Write(b)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				got, err := io.ReadAll(c)
				if want := bytes.Join(messages[:row.good], nil); !bytes.Equal(got, want) {
					t.Errorf("%d bytes, want %d", len(got), len(want))
				}
				if row.good == len(messages) != (err == nil) || err != nil && !errors.Is(err, meta.ErrCorrupt) {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

func TestPrivilegedPort(t *testing.T) {
	g := datanode.Guard{Allowed: []string{"integrity"}}
	if g.At("10.0.0.1:1004") || !g.At("10.0.0.1:9866") {
		t.Error("a port that only root can open needs no guard, another does")
	}
}
