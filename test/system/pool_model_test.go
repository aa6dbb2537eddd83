package system_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

// Random calls on the pool come to what a plain map of names says, errno for errno, and
// go on to do so after the daemon was killed.
func TestPoolTree(t *testing.T) {
	t.Parallel()
	n, _ := pool(t, "maps=1")
	r := newRank(t)
	tries := 0
	rapid.Check(t, func(t *rapid.T) {
		tries++ // a try that fails leaves its jobs behind
		m := &poolModel{t: t, rank: r, dir: n.mount + "/shuffle", try: tries, jobs: make(map[string]map[string]*modelStage)}
		t.Repeat(map[string]func(*rapid.T){
			"mkdir": m.mkdir, "rmdir": m.rmdir, "spec": m.spec, "write": m.write, "commit": m.commit,
			"commit again": m.commit, "unlink": m.unlink, "read": m.read, "": m.list,
			"kill": func(t *rapid.T) {
				if rapid.IntRange(0, 60).Draw(t, "kill") == 0 {
					n.Kill()
					n = n.startPool()
				}
			},
		})
		for job, stages := range m.jobs {
			for name, g := range stages {
				for file := range g.attempts {
					m.does(order{Do: "unlink", Path: m.path(job, name, file)}, "")
				}
				for number := range g.maps {
					if !g.maps[number].lost {
						m.does(order{Do: "unlink", Path: m.path(job, name, mapName(number))}, "")
					}
				}
				m.does(order{Do: "rmdir", Path: m.path(job, name)}, "")
			}
			m.does(order{Do: "rmdir", Path: m.path(job)}, "")
		}
	})
}

// A poolModel is what a pool has whose stages have one part.
type poolModel struct {
	t    *rapid.T
	rank *rank
	dir  string
	try  int
	jobs map[string]map[string]*modelStage
}

type modelStage struct {
	spec     int // how many maps; zero: none yet
	begun    bool
	attempts map[string]string
	maps     map[int]*modelMap
}

type modelMap struct {
	text string
	lost bool
}

func mapName(number int) string { return fmt.Sprintf("map-%06d", number) }

func (m *poolModel) path(names ...string) string { return m.dir + "/" + strings.Join(names, "/") }

// does has the rank do something, which comes to an errno, or to nothing.
func (m *poolModel) does(o order, want string) answer {
	a := m.rank.try(o)
	if a.Errno != want {
		m.t.Fatalf("%+v: %q, want %q", o, a.Errno, want)
	}
	return a
}

func (m *poolModel) draw(t *rapid.T) (job, name string, g *modelStage) {
	m.t = t
	job = fmt.Sprintf("%s%d", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "job"), m.try)
	name = rapid.SampledFrom([]string{"s", "t"}).Draw(t, "stage")
	return job, name, m.jobs[job][name]
}

func (m *poolModel) mkdir(t *rapid.T) {
	job, name, g := m.draw(t)
	if rapid.Bool().Draw(t, "of a job") {
		if m.jobs[job] != nil {
			m.does(order{Do: "mkdir", Path: m.path(job)}, "EEXIST")
			return
		}
		m.does(order{Do: "mkdir", Path: m.path(job)}, "")
		m.jobs[job] = make(map[string]*modelStage)
		return
	}
	o := order{Do: "mkdir", Path: m.path(job, name)}
	switch {
	case m.jobs[job] == nil:
		m.does(o, "ENOENT")
	case g != nil:
		m.does(o, "EEXIST")
	default:
		m.does(o, "")
		m.jobs[job][name] = &modelStage{attempts: make(map[string]string), maps: make(map[int]*modelMap)}
	}
}

func (m *poolModel) rmdir(t *rapid.T) {
	job, name, g := m.draw(t)
	if rapid.IntRange(0, 3).Draw(t, "of a job") == 0 {
		o := order{Do: "rmdir", Path: m.path(job)}
		switch {
		case m.jobs[job] == nil:
			m.does(o, "ENOENT")
		case len(m.jobs[job]) > 0:
			m.does(o, "ENOTEMPTY")
		default:
			m.does(o, "")
			delete(m.jobs, job)
		}
		return
	}
	o := order{Do: "rmdir", Path: m.path(job, name)}
	switch {
	case g == nil:
		m.does(o, "ENOENT")
	case len(g.attempts) > 0 || len(g.live()) > 0:
		m.does(o, "ENOTEMPTY")
	default:
		m.does(o, "")
		delete(m.jobs[job], name)
	}
}

func (g *modelStage) live() (numbers []int) {
	for number, one := range g.maps {
		if !one.lost {
			numbers = append(numbers, number)
		}
	}
	slices.Sort(numbers)
	return numbers
}

func (m *poolModel) spec(t *rapid.T) {
	job, name, g := m.draw(t)
	size := rapid.IntRange(1, 2).Draw(t, "maps")
	o := order{Do: "write", Path: m.path(job, name, "spec"), Name: fmt.Sprintf("maps=%d copies=1", size)}
	switch {
	case g == nil:
		m.does(o, "ENOENT")
	case g.spec != 0 && g.spec != size && g.begun:
		m.does(o, "EBUSY")
	default:
		m.does(o, "")
		g.spec = size
	}
}

// drawAttempt is one of two maps' two attempts.
func drawAttempt(t *rapid.T) (number int, file string) {
	number = rapid.IntRange(0, 1).Draw(t, "map")
	return number, fmt.Sprintf(".%s.%d", mapName(number), rapid.IntRange(0, 1).Draw(t, "attempt"))
}

func (m *poolModel) write(t *rapid.T) {
	job, name, g := m.draw(t)
	_, file := drawAttempt(t)
	text := rapid.SampledFrom([]string{"", "x", "yy"}).Draw(t, "text")
	o := order{Do: "write", Path: m.path(job, name, file), Name: text}
	if g == nil {
		m.does(o, "ENOENT")
		return
	}
	m.does(o, "")
	g.attempts[file], g.begun = text, true
}

func (m *poolModel) commit(t *rapid.T) {
	job, name, g := m.draw(t)
	number, file := drawAttempt(t)
	o := order{Do: "rename", Path: m.path(job, name, file), Name: m.path(job, name, mapName(number))}
	if rapid.IntRange(0, 3).Draw(t, "exclusive") == 0 {
		o.Off = unix.RENAME_NOREPLACE
	}
	if g == nil {
		m.does(o, "ENOENT")
		return
	}
	text, ok := g.attempts[file]
	won := g.maps[number]
	switch {
	case !ok:
		m.does(o, "ENOENT")
	case won != nil && !won.lost && o.Off != 0:
		m.does(o, "EEXIST")
	case won != nil && !won.lost:
		m.does(o, "")
		delete(g.attempts, file)
	case g.spec == 0:
		m.does(o, "ENOTSUP")
	case number >= g.spec:
		m.does(o, "EDOM")
	case won != nil && won.text != text:
		m.does(o, "EBADMSG")
	default:
		m.does(o, "")
		delete(g.attempts, file)
		g.maps[number] = &modelMap{text: text}
	}
}

func (m *poolModel) unlink(t *rapid.T) {
	job, name, g := m.draw(t)
	number, file := drawAttempt(t)
	if rapid.Bool().Draw(t, "of an attempt") {
		o := order{Do: "unlink", Path: m.path(job, name, file)}
		if g == nil || !has(g.attempts, file) {
			m.does(o, "ENOENT")
			return
		}
		m.does(o, "")
		delete(g.attempts, file)
		return
	}
	o := order{Do: "unlink", Path: m.path(job, name, mapName(number))}
	if g == nil || g.maps[number] == nil || g.maps[number].lost {
		m.does(o, "ENOENT")
		return
	}
	m.does(o, "")
	g.maps[number].lost = true
}

func has[K comparable, V any](m map[K]V, key K) bool { _, ok := m[key]; return ok }

func (m *poolModel) read(t *rapid.T) {
	job, name, g := m.draw(t)
	number, _ := drawAttempt(t)
	of := order{Do: "cat", Path: m.path(job, name, mapName(number))}
	switch {
	case g == nil || g.maps[number] == nil || g.maps[number].lost:
		m.does(of, "ENOENT")
	default:
		if a := m.does(of, ""); a.Sum != g.maps[number].text {
			t.Fatalf("%s is %q, want %q", of.Path, a.Sum, g.maps[number].text)
		}
	}
	part := order{Do: "cat", Path: m.path(job, name, "part-000000")}
	switch {
	case g == nil:
		m.does(part, "ENOENT")
	case g.spec == 0, len(g.maps) < g.spec:
		m.does(part, "EAGAIN")
	case len(g.live()) < g.spec:
		m.does(part, "ENODATA")
	default:
		want := ""
		for _, number := range g.live() {
			want += g.maps[number].text
		}
		if a := m.does(part, ""); a.Sum != want {
			t.Fatalf("%s is %q, want %q", part.Path, a.Sum, want)
		}
	}
}

// list holds after every call.
func (m *poolModel) list(t *rapid.T) {
	job, name, g := m.draw(t)
	if g == nil {
		m.does(order{Do: "list", Path: m.path(job, name)}, "ENOENT")
		return
	}
	want := append([]string{"spec", "state"}, slices.Collect(maps.Keys(g.attempts))...)
	for _, number := range g.live() {
		want = append(want, mapName(number))
	}
	slices.Sort(want)
	if a := m.does(order{Do: "list", Path: m.path(job, name)}, ""); a.Sum != strings.Join(want, " ") {
		t.Fatalf("%s/%s has %s, want %v", job, name, a.Sum, want)
	}
}
