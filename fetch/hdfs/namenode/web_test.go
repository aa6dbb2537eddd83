package namenode_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
)

// pipes are connections within this process, for a server of HTTP.
type pipes struct {
	made chan net.Conn
	once sync.Once
	gone chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case nc := <-p.made:
		return nc, nil
	case <-p.gone:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.gone) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// serveWeb has a client's network lead to a server of HTTP too.
func (f *fake) serveWeb(c *namenode.Config, addr string, serve http.HandlerFunc) *http.Server {
	p := &pipes{made: make(chan net.Conn), gone: make(chan struct{})}
	server := &http.Server{Handler: serve}
	f.wg.Go(func() { server.Serve(p) })
	c.Web = append(c.Web, "http://"+addr)
	other := c.Dial
	c.Dial = func(ctx context.Context, network, to string) (net.Conn, error) {
		if to != addr {
			return other(ctx, network, to)
		}
		here, there := net.Pipe()
		select {
		case p.made <- there:
			return here, nil
		case <-p.gone:
			return nil, syscall.ECONNREFUSED
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return server
}

// webStatus is one as WebHDFS tells it, of a size.
func webStatus(size int) string {
	return fmt.Sprintf(`{"accessTime":1,"blockSize":134217728,"childrenNum":0,"fileId":16386,"group":"users","length":%d,`+
		`"modificationTime":1700000000123,"owner":"alice","pathSuffix":"","permission":"644","replication":2,"storagePolicy":0,"type":"FILE"}`, size)
}

func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func exception(status int, class, text string) http.HandlerFunc {
	name := class[strings.LastIndexByte(class, '.')+1:]
	return says(status, fmt.Sprintf(`{"RemoteException":{"exception":%q,"javaClassName":%q,"message":%q}}`, name, class, text))
}

var (
	webSized   = says(200, `{"FileStatus":`+webStatus(7)+`}`)
	webStandby = exception(403, "org.apache.hadoop.ipc.StandbyException", "Operation category READ is not supported in state standby")
)

func webSilent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// WebHDFS is asked when no namenode answers by RPC, and one that cannot be
// reached, is silent or in standby takes no time from another.
func TestWeb(t *testing.T) {
	rows := []struct {
		name  string
		a     func(*asked) // by RPC; nil: no namenode listens
		webs  []http.HandlerFunc
		says  []string // of an error, or none
		is    []error
		takes time.Duration // at most
		by    string        // who answered, unless it was by RPC
	}{
		{name: "RPC answers", a: sized(7), webs: []http.HandlerFunc{says(500, "")}},
		{name: "refused", webs: []http.HandlerFunc{webSized}, by: "http://w0:9870"},
		{name: "silent", a: silent, webs: []http.HandlerFunc{webSized}, takes: 10 * time.Second, by: "http://w0:9870"},
		{name: "dropped", a: dropping, webs: []http.HandlerFunc{webSized}, by: "http://w0:9870"},
		{name: "standby first", webs: []http.HandlerFunc{webStandby, webSized}, by: "http://w1:9870"},
		{name: "silent first", webs: []http.HandlerFunc{webSilent, webSized}, takes: 20 * time.Second / 3, by: "http://w1:9870"},

		{name: "says no by RPC", a: func(a *asked) { a.fail("java.io.FileNotFoundException", "/x") }, webs: []http.HandlerFunc{webSized},
			is: []error{meta.ErrNotExist}},
		{name: "says no by web", webs: []http.HandlerFunc{exception(404, "java.io.FileNotFoundException", "/x")},
			says: []string{`namenode http://w0:9870: getFileInfo "/x"`}, is: []error{meta.ErrNotExist}, by: "http://w0:9870"},
		{name: "may not", webs: []http.HandlerFunc{exception(403, "org.apache.hadoop.security.AccessControlException", "Permission denied: user=alice\n\tat java")},
			says: []string{`user "alice"`, "setfacl"}, is: []error{syscall.EACCES}, by: "http://w0:9870"},
		{name: "all silent", a: silent, webs: []http.HandlerFunc{webSilent}, takes: 20 * time.Second,
			says: []string{"a:1: no answer in time; http://w0:9870: no answer in time"}, is: []error{namenode.ErrUnreachable}},
		{name: "wants to know who", webs: []http.HandlerFunc{says(401, "<html>")}, takes: time.Second,
			says: []string{"a:1: connection refused", "http://w0:9870: its web port refuses who we are (401 Unauthorized)"}, is: []error{namenode.ErrUnreachable}},
		{name: "somewhere else", webs: []http.HandlerFunc{func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://b:1/", http.StatusTemporaryRedirect)
		}}, takes: time.Second, says: []string{`its web port answers "307 Temporary Redirect"`}, is: []error{namenode.ErrUnreachable}},
		{name: "no JSON", webs: []http.HandlerFunc{says(200, "<html>")}, takes: time.Second,
			says: []string{"is this a namenode's web port?"}, is: []error{namenode.ErrUnreachable}},
		{name: "nonsense", webs: []http.HandlerFunc{says(200, `{"FileStatus":{"type":"DOOR","permission":"999"}}`)},
			says: []string{`type "DOOR", permission "999"`}, is: []error{meta.ErrCorrupt}, by: "http://w0:9870"},
		{name: "nothing", webs: []http.HandlerFunc{says(200, "{}")}, is: []error{meta.ErrCorrupt}, by: "http://w0:9870"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{hosts: map[string]func(*asked){"a:1": r.a}}
				c := f.reaches(t, r.webs...)
				began := time.Now()
				st, err := c.Stat(t.Context(), "/x")
				if took := time.Since(began); took > r.takes {
					t.Errorf("took %v", took)
				}
				if r.says == nil && r.is == nil && (err != nil || st.Size != 7) {
					t.Errorf("got %+v, %v", st, err)
				}
				holds(t, err, r.says, r.is)
				if c.Web() != r.by {
					t.Errorf("answered by %q", c.Web())
				}
			})
		})
	}
}

// reaches is a client that has a namenode at a:1, and WebHDFS at w0:9870, w1:9870
// and so on.
func (f *fake) reaches(t *testing.T, webs ...http.HandlerFunc) *namenode.Client {
	t.Helper()
	config := namenode.Config{Addresses: []string{"a:1"}, User: "alice", Dial: f.dial, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	var servers []*http.Server
	for i, serve := range webs {
		servers = append(servers, f.serveWeb(&config, fmt.Sprintf("w%d:9870", i), serve))
	}
	c, err := namenode.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		for _, s := range servers {
			s.Close()
		}
		f.wg.Wait()
	})
	return c
}

// WebHDFS that answered is asked first, and RPC is looked for beside the calls
// until it answers again.
func TestWebUntilRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		var dials, asks atomic.Int64
		f := &fake{dials: func(string) { dials.Add(1) }}
		f.hosts = map[string]func(*asked){"a:1": func(a *asked) {
			if up.Load() { // else silent
				rpcSized(a)
			}
		}}
		c := f.reaches(t, func(w http.ResponseWriter, r *http.Request) { asks.Add(1); webSized(w, r) })
		stat := func(most time.Duration) {
			t.Helper()
			began := time.Now()
			if st, err := c.Stat(t.Context(), "/x"); err != nil || st.Size != 7 {
				t.Errorf("got %+v, %v", st, err)
			}
			if took := time.Since(began); took > most {
				t.Errorf("took %v", took)
			}
		}
		stat(10 * time.Second)
		for range 100 {
			stat(0)
			time.Sleep(time.Second)
		}
		if asks.Load() != 101 || dials.Load() > 12 {
			t.Errorf("WebHDFS was asked %d times of 101, RPC dialled %d times", asks.Load(), dials.Load())
		}
		up.Store(true)
		for range 25 {
			stat(0)
			time.Sleep(time.Second)
		}
		before := asks.Load()
		stat(0)
		if asks.Load() != before || c.Web() != "" {
			t.Errorf("WebHDFS is still asked: %q", c.Web())
		}
	})
}

// An answer of WebHDFS that comes when RPC answers again is none to go by.
func TestWebIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := time.Duration(0)
		f := &fake{hosts: make(map[string]func(*asked))}
		c := f.reaches(t, func(w http.ResponseWriter, r *http.Request) { time.Sleep(slow); webSized(w, r) })
		stat := func() {
			t.Helper()
			if st, err := c.Stat(t.Context(), "/x"); err != nil || st.Size != 7 {
				t.Errorf("got %+v, %v", st, err)
			}
		}
		stat()
		time.Sleep(10 * time.Second)
		f.hosts["a:1"] = rpcSized
		slow = 5 * time.Second
		stat()
		if c.Web() != "" {
			t.Error("WebHDFS is asked on")
		}
	})
}

// rpcSized answers with a file, and with a namenode's settings.
func rpcSized(a *asked) {
	if a.method != "getServerDefaults" {
		sized(7)(a)
		return
	}
	a.reply(set{"serverDefaults": made("hdfs.FsServerDefaultsProto", set{
		"blockSize": uint64(1), "bytesPerChecksum": uint32(1), "writePacketSize": uint32(1), "replication": uint32(1), "fileBufferSize": uint32(1),
	})})
}

// What WebHDFS cannot tell is asked of RPC alone.
func TestWebWithoutKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		c := f.reaches(t, webSized)
		_, _, err := c.EncryptionKey(t.Context())
		holds(t, err, []string{"a:1: connection refused", "WebHDFS has no getDataEncryptionKey"}, []error{namenode.ErrUnreachable})
		if st, err := c.Stat(t.Context(), "/x"); err != nil || st.Size != 7 {
			t.Errorf("what it can tell: %+v, %v", st, err)
		}
	})
}

// A file that changes, or goes, between a listing and the question where it is
// has the listing made again.
func TestWebListsOneMoment(t *testing.T) {
	const blocks = `{"LocatedBlocks":{"fileLength":%d,"isUnderConstruction":false,"isLastBlockComplete":true,"locatedBlocks":[%s]}}`
	const one = `{"blockToken":{"urlString":"AAAAAA"},"isCorrupt":false,"startOffset":0,"locations":[],` +
		`"block":{"blockPoolId":"BP-1","blockId":1,"generationStamp":1,"numBytes":%d}}`
	for name, first := range map[string]http.HandlerFunc{
		"changes": says(200, fmt.Sprintf(blocks, 9, fmt.Sprintf(one, 9))),
		"goes":    exception(404, "java.io.FileNotFoundException", "/x"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lists, locates := 0, 0
				c := (&fake{}).reaches(t, func(w http.ResponseWriter, r *http.Request) {
					if r.FormValue("op") == "LISTSTATUS_BATCH" {
						lists++
						says(200, `{"DirectoryListing":{"partialListing":{"FileStatuses":{"FileStatus":[`+webStatus(7)+`]}},"remainingEntries":0}}`)(w, r)
						return
					}
					if locates++; locates == 1 {
						first(w, r)
						return
					}
					says(200, fmt.Sprintf(blocks, 7, fmt.Sprintf(one, 7)))(w, r)
				})
				var all []namenode.Status
				err := c.List(t.Context(), "/x", true, func(st namenode.Status) error { all = append(all, st); return nil })
				if err != nil || len(all) != 1 || all[0].Blocks.Size != 7 || lists != 2 {
					t.Errorf("%d lists, %+v, %v", lists, all, err)
				}
			})
		})
	}
}

// A file that may not be read is listed, and the others are located.
func TestWebListsWhatIsShut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := (&fake{}).reaches(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.FormValue("op") == "LISTSTATUS_BATCH":
				named := func(name string) string {
					return strings.Replace(webStatus(0), `"pathSuffix":""`, `"pathSuffix":"`+name+`"`, 1)
				}
				fmt.Fprintf(w, `{"DirectoryListing":{"partialListing":{"FileStatuses":{"FileStatus":[%s,%s]}},"remainingEntries":0}}`, named("open"), named("shut"))
			case strings.HasSuffix(r.URL.Path, "/shut"):
				exception(403, "org.apache.hadoop.security.AccessControlException", "Permission denied")(w, r)
			default:
				fmt.Fprint(w, `{"LocatedBlocks":{"fileLength":0}}`)
			}
		})
		located := make(map[string]bool)
		err := c.List(t.Context(), "/d", true, func(st namenode.Status) error { located[st.Name] = st.Blocks != nil; return nil })
		if err != nil || len(located) != 2 || !located["open"] || located["shut"] {
			t.Errorf("located: %v, %v", located, err)
		}
	})
}

// The blocks of a large file are asked for piece by piece; if it changes
// meanwhile, from the beginning.
func TestWebLocatesInPieces(t *testing.T) {
	const size, still = 20 << 30, 3 // from the third request on
	synctest.Test(t, func(t *testing.T) {
		asks := 0
		c := (&fake{}).reaches(t, func(w http.ResponseWriter, r *http.Request) {
			asks++
			var off, n uint64
			fmt.Sscan(r.FormValue("offset"), &off)
			fmt.Sscan(r.FormValue("length"), &n)
			var blocks []string
			for at := off / blockSize * blockSize; at < min(off+n, size); at += blockSize {
				blocks = append(blocks, fmt.Sprintf(`{"blockToken":{"urlString":"AAAAAA"},"startOffset":%d,"block":{"blockPoolId":"BP-1","blockId":%d,"numBytes":%d}}`, at, at/blockSize, blockSize))
			}
			length := uint64(size)
			if asks < still {
				length -= uint64(asks)
			}
			fmt.Fprintf(w, `{"LocatedBlocks":{"fileLength":%d,"locatedBlocks":[%s]}}`, length, strings.Join(blocks, ","))
		})
		got, err := c.Locate(t.Context(), "/x", 5, 1<<62)
		if err != nil || got.Size != size || len(got.Blocks) != size/blockSize || asks != 2+3 {
			t.Fatalf("%d requests, %v", asks, err)
		}
		for i, b := range got.Blocks {
			if b.Off != int64(i)*blockSize || b.ID != uint64(i) {
				t.Fatalf("block %d is %+v", i, b)
			}
		}
	})
}

func TestWebClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := (&fake{}).reaches(t, webSilent)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := c.Stat(t.Context(), "/x"); err == nil {
				t.Error("it is answered")
			}
		})
		synctest.Wait()
		began := time.Now()
		c.Close()
		wg.Wait()
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v", took)
		}
		if _, err := c.Stat(t.Context(), "/x"); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}
