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
	"rankfs/meta"
)

// askEnv has this test binary ask for each route of a socket, as whoever it is
// run as.
const askEnv = "RANKFS_TEST_ASK"

// changing are requests by which routes that anybody may use change something.
var changing = map[string]string{
	"plan":         `{"view":"d","settle":true}`,
	"policy":       `{"name":"lru"}`,
	"queue-policy": `{"name":"flow"}`,
}

// askAll writes which requests were refused.
func askAll(socket string) {
	refused := make(map[string]bool)
	for _, route := range control.Routes() {
		refused[route] = denied(socket, route, "{}")
	}
	for route, request := range changing {
		refused[route+" "+request] = denied(socket, route, request)
	}
	refused["warm check"] = denied(socket, "warm", `{"view":"d","check":true}`)
	refused["plan unsettle"] = denied(socket, "plan", `{"unsettle":true}`)
	_ = json.NewEncoder(os.Stdout).Encode(refused)
}

func denied(socket, route, request string) bool {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", socket)
	}}}
	answer, err := client.Post("http://rankfs/v1/"+route, "", strings.NewReader(request))
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(string(text), `"result"`) && !strings.Contains(string(text), `"denied"`) {
		panic(fmt.Sprintf("%s: %v: %s", route, err, text))
	}
	return strings.Contains(string(text), `"denied"`)
}

func TestEveryRouteHasARight(t *testing.T) {
	if routes, rows := control.Routes(), control.Rows(); !slices.Equal(routes, rows) {
		t.Errorf("routes %v\nrows %v", routes, rows)
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
			if want := tt.may != nil && !slices.Contains(tt.may, request); refused[request] != want {
				t.Errorf("%s: %s: refused %v, want %v", tt.name, request, refused[request], want)
			}
		}
		if len(refused) != len(control.Routes())+len(changing)+2 {
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

func askAs(t *testing.T, socket string, who syscall.Credential) (refused map[string]bool) {
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

// Who the kernel does not name is nobody: no owner of anything, whatever number stands for
// that.
func TestWhoIsNotKnown(t *testing.T) {
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

// What is refused says who may.
func TestRefusalsNameWhoMay(t *testing.T) {
	group := uint32(4711)
	err := control.Admin{Group: &group}.Refuse()
	if !errors.Is(err, meta.ErrDenied) || err.Error() != "this is not for all users of the mount; ask root, or a member of group 4711" {
		t.Error(err)
	}
}
