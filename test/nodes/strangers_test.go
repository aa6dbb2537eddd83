package nodes_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"rankfs/meta/group"
	"rankfs/meta/trust"
	"rankfs/test/cluster"
	"rankfs/test/daemon"
	"rankfs/test/eventually"
)

// A stranger is a host that does what it likes at the port of a node.
type stranger struct {
	t    *testing.T
	host *cluster.Host
	at   *daemon.Place
}

const guest = "00000000000000ff" // a node's id

func (s *stranger) dial() (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := s.host.DialContext(ctx, "tcp", s.at.Host.IP+daemon.Port)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(patience))
	}
	return conn, err
}

// says sends something, a byte at a time if there is a pace, and returns how that
// ended: nil if it did not.
func (s *stranger) says(what []byte, pace time.Duration) error {
	conn, err := s.dial()
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		for ; pace > 0 && len(what) > 0; what = what[1:] {
			if _, err := conn.Write(what[:1]); err != nil {
				return
			}
			time.Sleep(pace) // it is what is tried
		}
		conn.Write(what)
	}()
	return ended(conn)
}

// ended waits for the end of a connection.
func ended(conn net.Conn) error {
	_, err := io.Copy(io.Discard, conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return errors.Join(errors.New("it ended"), err)
}

// speaks makes a connection for a protocol that was welcomed.
func (s *stranger) speaks(protocol trust.Protocol, show *tls.Certificate) (*tls.Conn, error) {
	conn, err := s.dial()
	if err != nil {
		return nil, err
	}
	config := &tls.Config{InsecureSkipVerify: true, NextProtos: []string{string(protocol)}}
	if show != nil {
		config.Certificates = []tls.Certificate{*show}
	}
	c := tls.Client(conn, config)
	var greeting [1]byte
	if _, err = io.ReadFull(c, greeting[:]); err == nil && greeting[0] != 'w' {
		err = fmt.Errorf("it says %q", greeting)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

// shows tries what a certificate is good for.
func (s *stranger) shows(protocol trust.Protocol, show *tls.Certificate) error {
	c, err := s.speaks(protocol, show)
	if err == nil {
		c.Close()
	}
	return err
}

// tells sends what a protocol does not provide for, with no more to come, and
// returns the answer as an error.
func (s *stranger) tells(protocol trust.Protocol, show *tls.Certificate, what ...[]byte) error {
	c, err := s.speaks(protocol, show)
	if err != nil {
		return fmt.Errorf("not welcome: %w", err)
	}
	defer c.Close()
	for _, b := range what {
		if _, err = c.Write(b); err != nil {
			break
		}
	}
	c.CloseWrite()
	answer, err := io.ReadAll(io.LimitReader(c, 1<<16))
	if errors.Is(err, os.ErrDeadlineExceeded) || bytes.Contains(answer, []byte(`"result"`)) {
		return nil
	}
	return fmt.Errorf("answer %.100q: %w", answer, errors.Join(errors.New("it ended"), err))
}

// joins asks to be let in by a token.
func (s *stranger) joins(dir, node string, token trust.Token) error {
	return s.host.Do(func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		id, err := trust.OpenIdentity(dir, node, "stranger")
		if err == nil {
			_, err = group.Join(ctx, dir, s.at.Host.IP+daemon.Port, token, id, s.host.IP+daemon.Port, time.Now())
		}
		return err
	})
}

// signed is a certificate that an authority signed for a node.
func signed(t *testing.T, a *trust.Authority, from time.Time, life time.Duration) *tls.Certificate {
	t.Helper()
	dir := t.TempDir()
	id, err := trust.OpenIdentity(dir, guest, "stranger")
	if err != nil {
		t.Fatal(err)
	}
	request, err := id.Request()
	if err != nil {
		t.Fatal(err)
	}
	r, err := trust.ParseRequest(request)
	if err != nil {
		t.Fatal(err)
	}
	text, err := a.Sign(r, trust.RoleNode, from, life)
	if err == nil {
		err = id.Renew(text, a, from)
	}
	if err != nil {
		t.Fatal(err)
	}
	return shown(t, dir)
}

// shown is the certificate of the node whose directory that is.
func shown(t *testing.T, dir string) *tls.Certificate {
	t.Helper()
	c, err := tls.LoadX509KeyPair(dir+"/node.crt", dir+"/node.key")
	if err != nil {
		t.Fatal(err)
	}
	return &c
}

// Strangers get nowhere at a node that serves readers, and it says so in its log:
// neither one without a certificate, nor with one that another authority signed or that has
// expired, nor with a token that is forged or used up, nor one that was a node and is none any
// more, nor one that says too much, too little, too slowly, or nonsense. The readers, one of
// which gets its bytes through that port, do not notice, and nothing is left of it.
func TestStrangers(t *testing.T) {
	t.Parallel()
	c := cluster.Bare(t)
	m := newTeam(t, c, c.Hosts()[:3])
	n := m.Nodes[0]
	s := &stranger{t, c.Hosts()[3], n}
	m.numbers(n, "d")
	m.voting()
	readers := []*rereader{newRereader(t, n, "d"), newRereader(t, m.Nodes[1], "d")}
	m.progress(readers)
	memory := resident(t, n)
	conn, err := s.dial()
	if err != nil {
		t.Fatal(err)
	}
	if s.connections() != 1 {
		t.Error("a connection is not counted")
	}
	conn.Close()

	s.withoutACertificate()
	s.withWords()
	s.inCrowds()
	m.progress(readers)
	s.remembers(memory, 64<<20)
	s.withTokens(m)
	m.progress(readers)
	s.remembers(memory, 256<<20) // a node may send calls of 48 MiB

	eventually.Within(t, patience, "no connection is left", func() bool { return s.connections() == 0 })
	for _, r := range readers {
		r.finish()
	}
	if nodes := m.Members(n).Nodes; len(nodes) != 3 {
		t.Errorf("the cluster is %+v", nodes)
	}
	if _, err := create(n, "after"); err != nil {
		t.Error(err)
	}
}

// remembers checks by how much the node's memory grew.
func (s *stranger) remembers(before, most int64) {
	s.t.Helper()
	grown := resident(s.t, s.at) - before
	s.t.Logf("memory grew by %d KiB", grown>>10)
	if grown > most {
		s.t.Errorf("memory grew by %d bytes", grown)
	}
}

// refused tries something until it stands in the node's log that it was refused:
// there is a line a second at most.
func (s *stranger) refused(what, says string, try func() error) {
	s.t.Helper()
	before := len(s.at.Log())
	eventually.Within(s.t, patience, what+" is refused, and logged", func() bool {
		err := try()
		if err == nil {
			s.t.Fatalf("%s: it is let in", what)
		}
		logged := strings.Contains(s.at.Log()[before:], says)
		if logged {
			s.t.Logf("%s: %.200s", what, strings.ReplaceAll(err.Error(), "\n", ": "))
		}
		return logged
	})
}

func (s *stranger) withoutACertificate() {
	now := time.Now()
	other, err := trust.Create(s.t.TempDir(), now)
	if err != nil {
		s.t.Fatal(err)
	}
	own, err := trust.OpenAuthority(s.at.Dir + "/state/trust")
	if err != nil {
		s.t.Fatal(err)
	}
	foreign, expired := signed(s.t, other, now, time.Hour), signed(s.t, own, now.Add(-2*time.Hour), time.Hour)
	for _, protocol := range []trust.Protocol{trust.Raft, trust.Call, trust.Data} {
		s.refused("no certificate", "why=handshake", func() error { return s.shows(protocol, nil) })
		s.refused("another authority's", "why=certificate", func() error { return s.shows(protocol, foreign) })
		s.refused("an expired one", "why=certificate", func() error { return s.shows(protocol, expired) })
	}
	s.refused("no protocol of ours", "why=protocol", func() error { return s.shows("h2", nil) })
}

func (s *stranger) withWords() {
	hello := []byte{22, 3, 1, 1, 0, 1, 0, 0, 0xfc, 3, 3}
	huge := append([]byte{22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff}, make([]byte, 1<<14)...) // 16 MiB are announced
	s.refused("HTTP", "why=garbage", func() error { return s.says([]byte("GET / HTTP/1.1\r\n\r\n"), 0) })
	s.refused("a frame of 64 KiB", "why=garbage", func() error { return s.says(bytes.Repeat([]byte{0xff}, 1<<16), 0) })
	s.refused("a hello of 16 MiB", "why=handshake", func() error { return s.says(huge, 0) })
	s.refused("half a hello", "why=late", func() error { return s.says(hello, 0) })
	s.refused("a slow hello", "why=late", func() error { return s.says(append(hello, make([]byte, 245)...), 100*time.Millisecond) })
	s.refused("an endless application", "node not admitted", func() error {
		return s.tells(trust.Join, nil, []byte(`{"token":"`), bytes.Repeat([]byte("a"), 1<<20))
	})
	s.refused("half an application", "node not admitted", func() error { return s.tells(trust.Join, nil, []byte(`{"token":"`)) })
}

// withTokens goes from a forged token to one that lets a node in, once; what that
// node then does is none of what nodes do, and it is removed.
func (s *stranger) withTokens(m *team) {
	t := s.t
	token, err := trust.ParseToken(m.Token(s.at, 1))
	if err != nil {
		t.Fatal(err)
	}
	const others = "00000000000000fe"
	s.refused("a forged token", "node not admitted", func() error { return s.joins(t.TempDir(), others, trust.NewToken(token.Authority())) })
	dir := t.TempDir()
	if err := s.joins(dir, guest, token); err != nil {
		t.Fatal(err)
	}
	s.refused("a token once more", "node not admitted", func() error { return s.joins(t.TempDir(), others, token) })
	member := shown(t, dir)
	s.asANode(member)
	m.takesOut(m.Nodes[1], guest)
	eventually.Within(t, patience, "the node is removed", func() bool { return len(m.Members(s.at).Nodes) == 3 })
	for _, protocol := range []trust.Protocol{trust.Raft, trust.Call, trust.Data} {
		s.refused("a removed node", "why=revoked", func() error { return s.shows(protocol, member) })
	}
	s.refused("a removed node's token", "node not admitted", func() error { return s.joins(dir, guest, token) })
}

// asANode says what no node says.
func (s *stranger) asANode(member *tls.Certificate) {
	wrong := []struct {
		name string
		try  func() error
	}{
		{"a request of 64 GiB", func() error { return s.tells(trust.Data, member, request(1<<32-1)) }},
		{"half a request", func() error { return s.tells(trust.Data, member, request(1)[:20]) }},
		{"a request, and no more", func() error { return s.tells(trust.Data, member, request(1<<20), make([]byte, 100)) }},
		{"a call of 1 GiB", func() error { return s.calls(member, 1<<30) }},
		{"half a call", func() error {
			return s.tells(trust.Call, member, []byte("POST /apply HTTP/1.1\r\nHost: a\r\nContent-Le"))
		}},
		{"no message of Raft's", func() error { return s.tells(trust.Raft, member, []byte{0xff}) }},
		{"a message of Raft's, 4 GiB", func() error {
			return s.tells(trust.Raft, member, append([]byte("\x00\x81\xa7Entries\xc6\xff\xff\xff\xff"), 1, 2, 3))
		}},
	}
	for _, w := range wrong {
		err := w.try()
		if err == nil {
			s.t.Errorf("%s is taken", w.name)
		}
		s.t.Logf("%s: %v", w.name, err)
	}
}

// request asks a node for so many runs of records.
func request(runs uint32) []byte {
	b := make([]byte, 64)
	b[0], b[1], b[2] = 'r', 'k', 1
	binary.LittleEndian.PutUint32(b[4:], runs)
	binary.LittleEndian.PutUint64(b[56:], xxhash.Sum64(b[:56]))
	return b
}

// calls announces a call of so many bytes, and sends them for as long as the node
// takes them.
func (s *stranger) calls(show *tls.Certificate, size int64) error {
	client := http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return s.speaks(trust.Call, show) },
	}}
	defer client.CloseIdleConnections()
	r, err := http.NewRequest(http.MethodPost, "http://node/apply", io.LimitReader(zeros{}, size))
	if err != nil {
		return nil
	}
	r.ContentLength = size
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	if bytes.Contains(text, []byte(`"error"`)) {
		err = fmt.Errorf("answer %.100q", text)
	}
	return err
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// inCrowds has many connect at once for a while: some look whether there is a
// port, some say nothing, some say something very slowly, some say nonsense.
func (s *stranger) inCrowds() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var all sync.WaitGroup
	crowd := func(size int, do func(net.Conn)) {
		for range size {
			all.Go(func() {
				for ctx.Err() == nil {
					if conn, err := s.host.DialContext(ctx, "tcp", s.at.Host.IP+daemon.Port); err == nil {
						conn.SetDeadline(time.Now().Add(5 * time.Second))
						do(conn)
						conn.Close()
					}
				}
			})
		}
	}
	silent := func(conn net.Conn) { ended(conn) }
	slow := func(conn net.Conn) {
		for _, b := range []byte{22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3} {
			if _, err := conn.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	crowd(16, func(net.Conn) {})
	crowd(200, silent)
	crowd(50, slow)
	crowd(16, func(conn net.Conn) { conn.Write(bytes.Repeat([]byte("GET / HTTP/1.1\r\n\x16\x03\x01\xff\xff"), 4096)) })
	all.Wait()
}

// resident is how much memory a daemon has.
func resident(t *testing.T, n *daemon.Place) int64 {
	t.Helper()
	text := n.Must("sh", "-c", `awk '/^(RssAnon)/ {print $2}' /proc/$0/status`, strconv.Itoa(n.PID()))
	kib, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// connections is how many the daemon has with the stranger's host; what is
// closed and only lingers takes no descriptor of a process.
func (s *stranger) connections() (open int) {
	s.t.Helper()
	for line := range strings.Lines(s.at.Must("ss", "-Htna", "dst", s.host.IP)) {
		if state, _, _ := strings.Cut(line, " "); state != "TIME-WAIT" {
			open++
		}
	}
	return open
}
