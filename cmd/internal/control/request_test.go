package control_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/cmd/internal/control"
)

// post sends a body as no Client would.
func post(t *testing.T, socket, method, path, body string) string {
	t.Helper()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", socket)
	}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequest(method, "http://rankfs"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.Status + " " + string(data)
}

func TestBadRequests(t *testing.T) {
	socket := start(t, &fake{})
	tests := []struct{ name, method, path, body, want string }{
		{"good", "POST", "/v1/remove", `{"name":"x"}`, `200 OK {"result":{}}`},
		{"empty", "POST", "/v1/remove", ``, `"kind":"invalid"`},
		{"malformed", "POST", "/v1/remove", `{"name":`, `"kind":"invalid"`},
		{"wrong type", "POST", "/v1/remove", `{"name":3}`, `"kind":"invalid"`},
		{"negative", "POST", "/v1/create", `{"ranks":-1}`, `"kind":"invalid"`},
		{"overflow", "POST", "/v1/create", `{"ranks":18446744073709551616}`, `"kind":"invalid"`},
		{"unknown field", "POST", "/v1/verify", `{"path":"/etc"}`, `"kind":"invalid"`},
		{"two values", "POST", "/v1/remove", `{"name":"x"}{"name":"y"}`, `more than one JSON value`},
		{"oversized", "POST", "/v1/create", `{"name":"` + strings.Repeat("x", control.MaxBody) + `"}`, `too large`},
		{"a life that is no number", "POST", "/v1/token", `{"life":"1h"}`, `"kind":"invalid"`},
		{"half a use", "POST", "/v1/token", `{"uses":0.5}`, `"kind":"invalid"`},
		{"a token for good measure", "POST", "/v1/token", `{"life":1,"uses":1,"token":"x"}`, `"kind":"invalid"`},
		{"a drain of two", "POST", "/v1/drain", `{"node":["a","b"]}`, `"kind":"invalid"`},
		{"a removal of nothing", "POST", "/v1/remove-node", ``, `"kind":"invalid"`},
		{"ranks below zero", "POST", "/v1/plan", `{"seats":[{"host":"a","ranks":-1}]}`, `"kind":"invalid"`},
		{"weights below zero", "POST", "/v1/plan", `{"weights":{"local":-1}}`, `"kind":"invalid"`},
		{"too many seats", "POST", "/v1/plan", `{"seats":[` + strings.Repeat(`{"host":"a","ranks":1},`, control.MaxBody/20) + `]}`, `too large`},
		{"get", "GET", "/v1/status", ``, `405 `},
		{"no such method", "POST", "/v1/format", ``, `404 `},
		{"no such path", "POST", "/etc/passwd", ``, `404 `},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := post(t, socket, test.method, test.path, test.body); !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q in it", got, test.want)
			}
		})
	}
	if _, err := control.Dial(socket).Status(t.Context()); err != nil {
		t.Errorf("after all that: %v", err)
	}
}

func TestSlowRequestsAreCutOff(t *testing.T) {
	socket := startWith(t, func(ctx context.Context, l net.Listener) error {
		return control.ServeImpatient(ctx, l, &fake{}, 10*time.Millisecond)
	})
	tests := []struct{ name, send string }{
		{"silent", ""},
		{"half a header", "POST /v1/status HTTP/1.1\r\nHost:"},
		{"half a body", "POST /v1/remove HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			conn, err := net.Dial("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, test.send); err != nil && !errors.Is(err, syscall.EPIPE) { // cut off already
				t.Fatal(err)
			}
			if answer, err := io.ReadAll(conn); strings.Contains(string(answer), `"result"`) {
				t.Errorf("got %q, %v", answer, err)
			}
		})
	}
}

func TestLongHeaderIsRefused(t *testing.T) {
	conn, err := net.Dial("unix", start(t, &fake{}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() { // the server stops reading half way
		fmt.Fprintf(conn, "POST /v1/status HTTP/1.1\r\nHost: x\r\nX: %s\r\n\r\n", strings.Repeat("x", 1<<20))
	}()
	line, err := bufio.NewReader(conn).ReadString('\n')
	if !strings.Contains(line, "431") {
		t.Errorf("got %q, %v", line, err)
	}
}

// pipes is a listener without end.
type pipes struct{}

func (pipes) Accept() (net.Conn, error) { c, _ := net.Pipe(); return c, nil }
func (pipes) Close() error              { return nil }
func (pipes) Addr() net.Addr            { return nil }

func TestConnectionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := control.Limit(pipes{}, control.MaxConns, func(net.Conn) bool { return true })
		var conns []net.Conn
		for range control.MaxConns {
			c, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
		}
		accepted := make(chan net.Conn, 1)
		go func() { c, _ := l.Accept(); accepted <- c }()
		synctest.Wait()
		if len(accepted) != 0 {
			t.Fatal("accepted one too many")
		}
		conns[0].Close()
		conns[0].Close() // gives back one slot, not two
		<-accepted
		go func() { c, _ := l.Accept(); accepted <- c }()
		synctest.Wait()
		if len(accepted) != 0 {
			t.Fatal("a second Close made room for another")
		}
		l.Close()
		if c := <-accepted; c != nil {
			t.Error("accepted after Close")
		}
	})
}

// However many connections others hold, an admin gets one.
func TestOthersDoNotKeepAdminsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		come := make(chan net.Conn)
		l := control.Limit(queue(come), 1, func(c net.Conn) bool { return c.(marked).admin })
		enter := func(is bool) (ours net.Conn) {
			ours, theirs := net.Pipe()
			come <- marked{theirs, is}
			return ours
		}
		accepted := make(chan net.Conn, 9)
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					close(accepted)
					return
				}
				accepted <- c
			}
		}()
		enter(false)
		enter(false)
		(<-accepted).Close()
		<-accepted
		enter(false) // in the place of the first
		<-accepted
		one := enter(false)
		if answer, _ := io.ReadAll(one); !strings.Contains(string(answer), "503") || len(accepted) != 0 {
			t.Errorf("one too many is told %q", answer)
		}
		enter(true)
		synctest.Wait()
		if len(accepted) != 1 {
			t.Error("an admin waits")
		}
		l.Close()
		close(come)
	})
}

type marked struct {
	net.Conn
	admin bool
}

// A queue is a listener of the connections that come out of it.
type queue chan net.Conn

func (q queue) Accept() (net.Conn, error) {
	if c, ok := <-q; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (queue) Close() error   { return nil }
func (queue) Addr() net.Addr { return nil }
