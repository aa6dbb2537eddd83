package system_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rankfs/test/readme"
)

// A reader types what README says: lines with sudo as root, all others as a
// user. /mnt and /data are directories of the test; commands in its bin come
// before those of the machine.
type reader struct {
	person
	place
	bin string
}

func newReader(t *testing.T) reader {
	t.Helper()
	r := reader{newPerson(t, 65534, 65534), newPlace(t), ""}
	r.bin = filepath.Join(r.dir, "bin")
	must(t, os.Mkdir(r.bin, 0o755))
	must(t, os.Remove(r.mount))                                                 // README makes it
	t.Cleanup(func() { tryCommand(rankfs, "--run", r.run, "umount", r.mount) }) // of a test that fails before README does it
	r.script("rankfs", fmt.Sprintf(`case $1 in mount) set -- "$@" --state %s --ram 64MiB;; esac; exec %s --run %s "$@"`, r.state, rankfs, r.run))
	return r
}

func (r reader) script(name, text string) {
	r.person.t.Helper()
	must(r.person.t, os.WriteFile(filepath.Join(r.bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
}

// program puts a program of the tests where the user has it.
func (r reader) program(from, name string) {
	r.person.t.Helper()
	data, err := os.ReadFile(from)
	must(r.person.t, err)
	must(r.person.t, os.WriteFile(filepath.Join(r.home, name), data, 0o755))
}

// types runs one line and returns what it prints.
func (r reader) types(line string) string {
	r.person.t.Helper()
	line = strings.NewReplacer("/mnt/rankfs", r.mount, "/data/", r.dir+"/data/").Replace(line)
	var got result
	if root, ok := strings.CutPrefix(line, "sudo "); ok {
		got = command(r.person.t, "sh", "-euc", "export PATH="+r.bin+":$PATH; "+root)
	} else {
		got = r.does("sh", "-euc", "export PATH="+r.bin+":$PATH; "+line)
	}
	if got.code != 0 {
		r.person.t.Fatalf("%s: %v", line, got)
	}
	return got.out
}

// images puts an LMDB of 3000 records where README has one, and returns a file of
// their checksums.
func (r reader) images(t *testing.T) (sums string) {
	t.Helper()
	images, sums := corpus(t, "datum", 3000)
	must(t, os.Mkdir(filepath.Join(r.dir, "data"), 0o755))
	must(t, os.Rename(images, filepath.Join(r.dir, "data", "train")))
	return sums
}

// session types the lines of a recipe, which must print all that is wanted.
func (r reader) session(recipe string, wants ...string) {
	t := r.person.t
	t.Helper()
	all := ""
	for _, line := range readme.Lines(t, recipe) {
		all += r.types(line)
	}
	for _, want := range wants {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in what README's lines print:\n%s", want, all)
		}
	}
}

// TestReadmeMPI types the session of README. What stands in: mpirun is that of
// the tests, which needs no network, and ./train a program that verifies each
// byte that its ranks map.
func TestReadmeMPI(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	sums := r.images(t)
	r.program(programs+"run", "run")
	r.program(programs+"bin/map_verify", "map_verify")
	r.program(sums, "sums")
	r.script("mpirun", `case $1 in -np) shift; exec ./run "$@";; esac; exec /usr/bin/mpirun "$@"`)
	must(t, os.WriteFile(filepath.Join(r.home, "train"), []byte("#!/bin/sh\nexec ./map_verify -d -m -r \"$1\" sums\n"), 0o755))
	r.session("MPI with an LMDB", "batch-000000\n", "OK ranks=4 ", " records=3000 ", "opened ")
}

// TestReadmePython runs the lines of Python, for two ranks, with Debian's Python
// and its numpy.
func TestReadmePython(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	s := newLines(t, 400)
	r.types("sudo mkdir -p /mnt/rankfs")
	r.types("sudo rankfs mount /mnt/rankfs --background")
	r.types("sudo rankfs dataset create train --source " + s.uri + " --ranks 2 --batch 40 --order full --tail drop")
	text := strings.ReplaceAll(readme.Block(t, "Python with numpy alone"), "/mnt/rankfs", r.mount)
	must(t, os.WriteFile(filepath.Join(r.home, "epoch.py"), []byte(text), 0o755))
	for rank := range 2 {
		got := r.types(fmt.Sprintf("RANK=%d /usr/bin/python3 epoch.py", rank))
		if n := strings.Count(got, " 40 records "); n != 5 {
			t.Errorf("rank %d: %d batches of 40 records, want 5:\n%s", rank, n, got)
		}
	}
}

// TestReadmeSlurm types the lines. What stands in: systemctl runs what the unit of
// docs has, with the options that the line's remark says, as systemd would; srun runs
// the ranks one after the other with the variables that Slurm sets; ./train copies its
// batches. slurm.conf is not asked.
func TestReadmeSlurm(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	r.images(t)
	r.systemctl(readme.Block(t, "Slurm:"))
	r.script("srun", `n=$2; shift 2; i=0
while [ $i -lt $n ]; do SLURM_NTASKS=$n SLURM_PROCID=$i "$@"; i=$((i+1)); done`)
	must(t, os.WriteFile(filepath.Join(r.home, "train"), []byte("#!/bin/sh\ncat \"$1\"/batch-?????? | wc -c\n"), 0o755))
	r.session("Slurm:", "3,000 records", "4 here of 4", "opened   48 batches", " 0 errors")
}

// systemctl runs the unit's commands for /mnt/rankfs: the options are those that the
// recipe has beside systemctl edit, but for the memory, which is the test's.
func (r reader) systemctl(recipe string) {
	t := r.person.t
	t.Helper()
	options := regexp.MustCompile(`systemctl edit .*# \[Service\] and below it Environment="OPTIONS=(.*)"`).FindStringSubmatch(recipe)
	unit, err := os.ReadFile("../../docs/rankfs@.service")
	must(t, err)
	start := regexp.MustCompile(`(?m)^(ExecStartPre|ExecStart)=(.*)$`).FindAllStringSubmatch(string(unit), -1)
	if options == nil || len(start) != 2 {
		t.Fatalf("the recipe edits %q, and the unit starts %q", options, start)
	}
	var lines []string
	for _, command := range start {
		lines = append(lines, strings.NewReplacer("$OPTIONS", options[1], "%f", r.mount, "/usr/local/bin/", "").Replace(command[2]))
	}
	r.script("systemctl", fmt.Sprintf(`case $1 in
edit) exit 0;;
enable) [ "$2 $3" = "--now rankfs@mnt-rankfs" ] || exit 1;;
*) exit 1;;
esac
%s
setsid %s >%s/daemon.log 2>&1 &
until mountpoint -q %s; do kill -0 $! && sleep 0.05; done`, lines[0], lines[1], r.dir, r.mount))
}

// TestReadmeContainers runs the docker line. What stands in: docker is a mount
// namespace that has the bound directory as the options say, and nothing else
// of a container. The mount is made after it was started.
func TestReadmeContainers(t *testing.T) {
	t.Parallel()
	r := newReader(t)
	s := newLines(t, 40)
	line := readme.Lines(t, "Containers:")[0]
	out := sh(t, `
		unshare -m --propagation private sh -euc '
			top=$1 bin=$2 rankfs=$3 run=$4 uri=$5 state=$6 line=$7
			mkdir -p $top/mnt && mount -t tmpfs rankfs-test $top/mnt && mount --make-shared $top/mnt && mkdir $top/mnt/rankfs
			trap "touch $top/made; $rankfs --run $run umount $top/mnt/rankfs >/dev/null 2>&1 || :" EXIT
			cd $top && PATH=$bin:$PATH sh -euc "$line" >$top/out & container=$!
			until [ -e $top/begun ]; do kill -0 $container && sleep 0.05; done
			$rankfs --run $run mount $top/mnt/rankfs --background --state $state --ram 64MiB >/dev/null
			$rankfs --run $run dataset create train --source $uri --batch 5 >/dev/null 2>&1
			touch $top/made
			ok=0; wait $container || ok=$?
			$rankfs --run $run umount $top/mnt/rankfs >/dev/null
			cat $top/out
			exit $ok' sh "$@"`, r.dir, r.bin, rankfs, r.run, s.uri, r.state,
		strings.ReplaceAll(containers(t, r, line), "/mnt", r.dir+"/mnt"))
	if read, want := strings.Count(out, "record "), len(s.records); read != want {
		t.Errorf("the container read %d lines, want %d:\n%s", read, want, out)
	}
}

// containers makes the stand-ins of TestReadmeContainers.
func containers(t *testing.T, r reader, line string) string {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(r.dir, "train"), fmt.Appendf(nil, `#!/bin/sh
touch %[1]s/begun
i=0; until [ -e %[1]s/made ]; do i=$((i+1)); [ $i -lt 2000 ] && sleep 0.05 || exit 1; done
cat "$1"/batch-??????
`, r.dir), 0o755))
	r.script("docker", `[ "$1 $2 $3" = "run --rm -v" ] || exit 2
bind=$4; shift 5
case $bind in *:ro,rslave) kind=slave;; *:ro) kind=private;; *) exit 2;; esac
exec unshare -m --propagation $kind "$@"`)
	return line
}
