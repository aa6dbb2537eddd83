package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"rankfs/cmd/internal/control"
)

// askEnv has this test binary ask for each route of a socket, as the user that it
// runs as.
const askEnv = "RANKFS_TEST_ASK"

// changing are requests by which routes that all users may ask change something.
var changing = map[string]string{
	"plan":         `{"view":"d","settle":true}`,
	"policy":       `{"name":"lru"}`,
	"queue-policy": `{"name":"flow"}`,
}

// askAll writes by which words each request was refused; none if it was not.
func askAll(socket string) {
	refused := make(map[string]string)
	for _, route := range control.Routes() {
		refused[route] = refusal(socket, route, "{}")
	}
	for route, request := range changing {
		refused[route+" "+request] = refusal(socket, route, request)
	}
	refused["warm check"] = refusal(socket, "warm", `{"view":"d","check":true}`)
	refused["plan unsettle"] = refusal(socket, "plan", `{"unsettle":true}`)
	for _, r := range refusals {
		refused[r.route+" "+r.request] = refusal(socket, r.route, r.request)
	}
	_ = json.NewEncoder(os.Stdout).Encode(refused)
}

func refusal(socket, route, request string) string {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", socket)
	}}}
	answer, err := client.Post("http://rankfs/v1/"+route, "", strings.NewReader(request))
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || json.Valid([]byte(request)) && !strings.Contains(string(text), `"result"`) && !strings.Contains(string(text), `"denied"`) {
		panic(fmt.Sprintf("%s: %v: %s", route, err, text))
	}
	var is struct {
		Error struct{ Kind, Message string }
	}
	if err := json.Unmarshal(text, &is); err != nil || is.Error.Kind != "denied" {
		return ""
	}
	return is.Error.Message
}

// What not all users may do says what that is, so that a user who is refused is told.
func TestEveryRouteThatMayBeRefusedSaysWhatItDoes(t *testing.T) {
	acts, others := control.Refusable()
	for name, act := range acts {
		if act == "" {
			t.Errorf("%s does not say what it does", name)
		}
	}
	for _, act := range others {
		if act != "" {
			t.Errorf("no user is refused to %s", act)
		}
	}
}

// TestWhoMayAskWhat asks for every route as root, as another user, and as one
// of the admin group, by its own group or by a supplementary one.
func TestWhoMayAskWhat(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("only root can ask as other users: run the tests as root")
	}
	looking := []string{"all", "cached", "cluster", "dataset", "datasets", "explain", "load", "plan", "policy", "queue", "queue-policy", "queues", "status", "trace", "traces", "warm check",
		"drop-pool", "make-pool", "pool-job", "pool-jobs", "pool-quota", "pool-stage", "reset-stage", "seal-stage"}
	group := uint32(4711)
	socket := openTo(t, control.Admin{Group: &group})
	none := openTo(t, control.Admin{})
	for _, tt := range []struct {
		name   string
		socket string
		who    syscall.Credential
		may    []string // nil: everything
	}{
		{"root", socket, syscall.Credential{}, nil},
		{"another user", socket, syscall.Credential{Uid: 65534, Gid: 65534}, looking},
		{"another user with groups", socket, syscall.Credential{Uid: 1234, Gid: 0, Groups: []uint32{0, 4712}}, looking},
		{"of the admin group", socket, syscall.Credential{Uid: 1234, Gid: 4711}, nil},
		{"of the admin group besides", socket, syscall.Credential{Uid: 1234, Gid: 1, Groups: []uint32{2, 4711}}, nil},
		{"the last of many groups", socket, syscall.Credential{Uid: 1234, Gid: 1, Groups: append(slices.Repeat([]uint32{5}, 1000), 4711)}, nil},
		{"no admin group", none, syscall.Credential{Uid: 1234, Gid: 4711}, looking},
		{"no admin group, of root's group", none, syscall.Credential{Uid: 1234, Gid: 0}, looking},
	} {
		refused := askAs(t, tt.socket, tt.who)
		for _, request := range slices.Sorted(maps.Keys(refused)) {
			if want := tt.may != nil && !slices.Contains(tt.may, request); (refused[request] != "") != want {
				t.Errorf("%s: %s: refused %q, want %v", tt.name, request, refused[request], want)
			}
		}
		if len(refused) != len(control.Routes())+len(changing)+2+len(refusals) {
			t.Errorf("%s: asked %v", tt.name, refused)
		}
	}
}

// openTo serves a fake where all users get at it.
func openTo(t *testing.T, a control.Admin) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "control")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(dir, 0o711), os.Chmod(socket, 0o666)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- control.Serve(ctx, l, &fake{}, a, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return socket
}

func askAs(t *testing.T, socket string, who syscall.Credential) (refused map[string]string) {
	t.Helper()
	self, err := os.Open("/proc/self/exe") // its path may be closed to others
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	cmd := exec.Command("/proc/self/fd/3")
	cmd.ExtraFiles = []*os.File{self}
	cmd.Env = append(os.Environ(), askEnv+"="+socket)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &who}
	var words strings.Builder
	cmd.Stderr = &words
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, words.String())
	}
	if err := json.Unmarshal(out, &refused); err != nil {
		t.Fatal(err)
	}
	return refused
}

// A caller of whom the kernel does not say which user it is owns nothing, whatever number
// stands for that.
func TestACallerWithoutAUser(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- control.Serve(ctx, l, &fake{}, control.Admin{}, slog.New(slog.DiscardHandler)) }()
	for route, want := range map[string]bool{"status": true, "pool-jobs": true, "pool-job": false, "drop-pool": false, "remove": false} {
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		answer, err := client.Post("http://"+l.Addr().String()+"/v1/"+route, "", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if answer.Body.Close(); err != nil || strings.Contains(string(text), `"denied"`) == want {
			t.Errorf("%s: %s, %v", route, text, err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// refusals are how requests are refused to users who may only look.
var refusals = []struct{ route, request, act string }{
	{"plan", `{"view":"d@epoch=1","settle":true}`, "settle plan of d@epoch=1"},
	{"plan", `{"view":"d","unsettle":true}`, "unsettle plan of d"},
	{"policy", `{"name":"opt"}`, "set cache policy opt"},
	{"queue-policy", `{"name":"probability"}`, "set queue policy probability"},
	{"warm", `{"view":"d"}`, "warm up d"},
	{"remove", `{"name":"d"}`, "remove dataset d"},
	{"create", `{"name":"d","source":"file:/etc/shadow"}`, "create dataset d"},
	{"refresh", `{"name":"d"}`, "refresh dataset d"},
	{"verify", `{"name":"d"}`, "verify dataset d"},
	{"token", `{"uses":1}`, "create token"},
	{"tokens", `null`, "list tokens"},
	{"drop-token", `{"name":"cafe"}`, "remove token cafe"},
	{"drain", `{"node":"n1","drain":true}`, "drain node n1"},
	{"drain", `{"node":"n1"}`, "undrain node n1"},
	{"remove-node", `{"name":"n1"}`, "remove node n1"},
	{"promote-node", `{"name":"n1"}`, "promote node n1"},
	{"reset-queue", `{"name":"d"}`, "reset queue of d"},
	{"drop-queue", `{"name":"d"}`, "remove queue of d"},
	{"pin", `{"view":"d","tier":"ram"}`, "pin d"},
	{"pin", `{"view":"d"}`, "unpin d"},
	{"evict", `{"name":"d@epoch=1"}`, "evict d@epoch=1"},
	{"evict", `{"name":`, "evict"},
	{"learn-trace", `{"view":"d"}`, "learn trace of d"},
	{"learn-trace", `{"text":"","for":"d"}`, "learn trace of d"},
	{"forget-trace", `{"name":"d"}`, "forget trace of d"},
}

// What is refused is told with what it was asked of, and with who may.
func TestRefusals(t *testing.T) {
	group := uint32(4711)
	for who, socket := range map[string]string{
		"root": openTo(t, control.Admin{}), "root, or a member of group 4711": openTo(t, control.Admin{Group: &group}),
	} {
		refused := askAs(t, socket, syscall.Credential{Uid: 65534, Gid: 65534})
		for _, r := range refusals {
			want := r.act + ": this is not for all users of the mount; ask " + who
			if got := refused[r.route+" "+r.request]; got != want {
				t.Errorf("%s %s: %q, want %q", r.route, r.request, got, want)
			}
		}
		for request, got := range refused {
			if strings.HasPrefix(got, ":") {
				t.Errorf("%s: %q does not say what", request, got)
			}
		}
	}
}
