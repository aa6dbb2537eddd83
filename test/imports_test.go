package test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What each package may import of ours; a name ending in / allows all below.
var mayImport = map[string][]string{
	"rankfs/meta":                    {},
	"rankfs/meta/fault":              {},
	"rankfs/meta/heap":               {},
	"rankfs/meta/mountinfo":          {},
	"rankfs/meta/lists":              {"rankfs/meta"},
	"rankfs/meta/assign":             {"rankfs/meta", "rankfs/meta/heap", "rankfs/meta/lists"},
	"rankfs/meta/diskdir":            {"rankfs/meta", "rankfs/meta/slowdisk"},
	"rankfs/meta/durable":            {},
	"rankfs/meta/queue":              {"rankfs/meta", "rankfs/meta/lists"},
	"rankfs/meta/slowdisk":           {},
	"rankfs/meta/stall":              {"rankfs/meta"},
	"rankfs/meta/state":              {"rankfs/meta"},
	"rankfs/meta/trust":              {"rankfs/meta", "rankfs/meta/durable"},
	"rankfs/meta/group":              {"rankfs/meta", "rankfs/meta/durable", "rankfs/meta/state", "rankfs/meta/trust"},
	"rankfs/meta/dispatch":           {"rankfs/meta", "rankfs/meta/queue", "rankfs/meta/state"},
	"rankfs/meta/wire":               {"rankfs/meta", "rankfs/meta/fault"},
	"rankfs/shuffle/order":           {"rankfs/meta"},
	"rankfs/shuffle/placement":       {"rankfs/meta"},
	"rankfs/shuffle/pool":            {"rankfs/meta", "rankfs/meta/fault", "rankfs/meta/state", "rankfs/meta/wire", "rankfs/shuffle/access", "rankfs/shuffle/disk", "rankfs/shuffle/gathering", "rankfs/shuffle/groupcommit", "rankfs/shuffle/mapfiles", "rankfs/shuffle/memory", "rankfs/shuffle/merging", "rankfs/shuffle/packing", "rankfs/shuffle/pieces", "rankfs/shuffle/placement", "rankfs/shuffle/quota", "rankfs/shuffle/record", "rankfs/shuffle/report", "rankfs/shuffle/turns", "rankfs/shuffle/uses"},
	"rankfs/shuffle/turns":           {"rankfs/meta", "rankfs/meta/state", "rankfs/meta/wire"},
	"rankfs/shuffle/pieces":          {"rankfs/meta", "rankfs/meta/fault"},
	"rankfs/shuffle/packing":         {"rankfs/meta", "rankfs/meta/wire", "rankfs/shuffle/turns"},
	"rankfs/shuffle/openmaps":        {"rankfs/meta", "rankfs/meta/fault", "rankfs/shuffle/pieces"},
	"rankfs/shuffle/mapfiles":        {"rankfs/meta", "rankfs/meta/diskdir", "rankfs/meta/durable", "rankfs/meta/slowdisk", "rankfs/meta/state", "rankfs/shuffle/access", "rankfs/shuffle/disk", "rankfs/shuffle/memory", "rankfs/shuffle/openmaps", "rankfs/shuffle/pieces"},
	"rankfs/shuffle/memory":          {"rankfs/meta"},
	"rankfs/shuffle/merging":         {"rankfs/meta", "rankfs/meta/fault", "rankfs/meta/state", "rankfs/shuffle/pieces", "rankfs/shuffle/record", "rankfs/shuffle/turns"},
	"rankfs/shuffle/disk":            {"rankfs/meta", "rankfs/meta/diskdir", "rankfs/meta/durable", "rankfs/meta/slowdisk"},
	"rankfs/shuffle/groupcommit":     {"rankfs/meta", "rankfs/meta/state"},
	"rankfs/shuffle/quota":           {"rankfs/meta", "rankfs/meta/state"},
	"rankfs/shuffle/gathering":       {"rankfs/meta", "rankfs/meta/state", "rankfs/shuffle/merging", "rankfs/shuffle/pieces", "rankfs/shuffle/turns"},
	"rankfs/shuffle/report":          {"rankfs/meta", "rankfs/meta/state"},
	"rankfs/shuffle/access":          {"rankfs/meta"},
	"rankfs/shuffle/uses":            {"rankfs/meta", "rankfs/meta/state"},
	"rankfs/shuffle/record":          {"rankfs/meta"},
	"rankfs/cmd/internal/pooled":     {"rankfs/meta", "rankfs/meta/state", "rankfs/cache", "rankfs/fs/pooltree", "rankfs/fs/xattr", "rankfs/shuffle/pool"},
	"rankfs/shuffle/plan":            {"rankfs/meta", "rankfs/meta/assign", "rankfs/shuffle/order"},
	"rankfs/fetch/index":             {"rankfs/meta", "rankfs/meta/durable"},
	"rankfs/fetch/uri":               {"rankfs/meta"},
	"rankfs/fetch/warm":              {},
	"rankfs/fetch/lmdb":              {"rankfs/meta", "rankfs/fetch/index", "rankfs/fetch/warm"},
	"rankfs/fetch/local":             {"rankfs/meta", "rankfs/fetch/index", "rankfs/fetch/warm"},
	"rankfs/fetch/hdfs/message":      {},
	"rankfs/fetch/hdfs/namenode":     {"rankfs/meta", "rankfs/fetch/hdfs/message"},
	"rankfs/fetch/hdfs/datanode":     {"rankfs/meta", "rankfs/meta/stall", "rankfs/fetch/hdfs/message", "rankfs/fetch/hdfs/namenode", "rankfs/fetch/hdfs/shortcircuit"},
	"rankfs/fetch/hdfs/shortcircuit": {"rankfs/meta", "rankfs/fetch/hdfs/message"},
	"rankfs/fetch/splits":            {"rankfs/meta", "rankfs/fetch/index"},
	"rankfs/fetch/hdfs":              {"rankfs/meta", "rankfs/meta/stall", "rankfs/fetch/index", "rankfs/fetch/lmdb", "rankfs/fetch/sequence", "rankfs/fetch/splits", "rankfs/fetch/uri", "rankfs/fetch/hdfs/"},
	"rankfs/fetch/sequence":          {"rankfs/meta"},
	"rankfs/fetch/stage":             {"rankfs/meta", "rankfs/fetch/index", "rankfs/shuffle/pool", "rankfs/shuffle/record"},
	"rankfs/fetch":                   {"rankfs/meta", "rankfs/meta/mountinfo", "rankfs/meta/fault", "rankfs/fetch/"},
	"rankfs/fetch/batch":             {"rankfs/meta", "rankfs/meta/stall", "rankfs/fetch/peers", "rankfs/shuffle/plan", "rankfs/fetch", "rankfs/fetch/index", "rankfs/fetch/uri"},
	"rankfs/fetch/peers":             {"rankfs/meta", "rankfs/meta/wire", "rankfs/fetch/uri"},
	"rankfs/cache":                   {"rankfs/meta", "rankfs/meta/stall", "rankfs/cache/ahead", "rankfs/cache/disks", "rankfs/cache/fair", "rankfs/cache/ledger", "rankfs/cache/pack", "rankfs/cache/policy", "rankfs/cache/trace"},
	"rankfs/cache/ahead":             {},
	"rankfs/cache/blobs":             {"rankfs/meta", "rankfs/cache/disks"},
	"rankfs/cache/disks":             {"rankfs/meta", "rankfs/meta/diskdir", "rankfs/meta/fault", "rankfs/meta/slowdisk", "rankfs/cache/ledger"},
	"rankfs/cache/fair":              {},
	"rankfs/cache/ledger":            {},
	"rankfs/cache/pack":              {"rankfs/meta"},
	"rankfs/cache/pressure":          {"rankfs/meta", "rankfs/meta/mountinfo"},
	"rankfs/cache/trace":             {"rankfs/meta"},
	"rankfs/cache/policy":            {"rankfs/meta", "rankfs/meta/heap"},
	"rankfs/cache/simulate":          {"rankfs/meta", "rankfs/cache/ahead", "rankfs/cache/policy", "rankfs/shuffle/order", "rankfs/meta/heap"},
	"rankfs/fs":                      {"rankfs/meta", "rankfs/meta/mountinfo", "rankfs/fs/device", "rankfs/fs/errnos", "rankfs/fs/xattr"},
	"rankfs/fs/device":               {"rankfs/meta/mountinfo"},
	"rankfs/fs/errnos":               {"rankfs/meta"},
	"rankfs/fs/pooltree":             {"rankfs/meta", "rankfs/fs/device", "rankfs/fs/errnos", "rankfs/fs/xattr"},
	"rankfs/fs/xattr":                {},
	"rankfs/cmd/internal/catalog":    {"rankfs/meta", "rankfs/meta/durable", "rankfs/meta/state", "rankfs/fetch/peers", "rankfs/shuffle/plan", "rankfs/fetch", "rankfs/fetch/batch", "rankfs/fetch/index", "rankfs/fetch/splits", "rankfs/fetch/uri", "rankfs/cmd/internal/control"},
	"rankfs/cmd/internal/control":    {"rankfs/meta"},
	"rankfs/cmd/internal/mounts":     {"rankfs/meta", "rankfs/meta/mountinfo", "rankfs/meta/durable"},
	"rankfs/cmd/internal/failure":    {"rankfs/meta"},
	"rankfs/cmd/internal/terminal":   {"rankfs/cmd/internal/control"},
	"rankfs/cmd/internal/forecast":   {"rankfs/meta", "rankfs/shuffle/order", "rankfs/fetch/uri", "rankfs/cache/policy", "rankfs/cache/simulate", "rankfs/cache/trace", "rankfs/cmd/internal/control", "rankfs/cmd/internal/failure", "rankfs/cmd/internal/terminal"},
	"rankfs/cmd/internal/mounting":   {"rankfs/meta", "rankfs/meta/mountinfo", "rankfs/cache/policy", "rankfs/fetch/hdfs/namenode", "rankfs/cmd/internal/failure", "rankfs/cmd/internal/mounts", "rankfs/cmd/internal/node"},
	"rankfs/cmd/internal/supply":     {"rankfs/meta"},
	"rankfs/cmd/internal/views":      {"rankfs/meta", "rankfs/meta/dispatch", "rankfs/meta/stall", "rankfs/meta/state", "rankfs/shuffle/order", "rankfs/shuffle/plan", "rankfs/fetch/batch", "rankfs/fetch/index", "rankfs/cache", "rankfs/fs", "rankfs/fs/xattr", "rankfs/cmd/internal/catalog"},
	"rankfs/cmd/internal/kept":       {"rankfs/meta", "rankfs/meta/durable", "rankfs/cache", "rankfs/cache/disks", "rankfs/cache/policy", "rankfs/cache/pressure", "rankfs/cache/trace", "rankfs/cmd/internal/catalog", "rankfs/cmd/internal/control", "rankfs/cmd/internal/views"},
	"rankfs/cmd/internal/survey":     {"rankfs/meta", "rankfs/meta/assign", "rankfs/shuffle/plan", "rankfs/fetch/batch", "rankfs/fetch/index", "rankfs/cmd/internal/control"},
	"rankfs/cmd/internal/admin":      {"rankfs/meta", "rankfs/meta/dispatch", "rankfs/meta/group", "rankfs/meta/queue", "rankfs/meta/stall", "rankfs/meta/state", "rankfs/meta/trust", "rankfs/meta/wire", "rankfs/shuffle/plan", "rankfs/shuffle/pool", "rankfs/shuffle/report", "rankfs/fetch/hdfs", "rankfs/fs", "rankfs/cmd/internal/catalog", "rankfs/cmd/internal/control", "rankfs/cmd/internal/kept", "rankfs/cmd/internal/survey", "rankfs/cmd/internal/views"},
	"rankfs/cmd/internal/node":       {"rankfs/"},
	"rankfs/cmd/rankfs":              {"rankfs/meta", "rankfs/meta/mountinfo", "rankfs/fetch/uri", "rankfs/cache/policy", "rankfs/cache/trace", "rankfs/cmd/internal/"},

	// For tests.
	"rankfs/cmd/internal/catalog/catalogtest": {"rankfs/meta", "rankfs/meta/state", "rankfs/shuffle/plan", "rankfs/fetch", "rankfs/fetch/hdfs", "rankfs/fetch/index", "rankfs/cmd/internal/catalog"},
	"rankfs/cache/trace/tracetest":            {},
	"rankfs/shuffle/plan/plantest":            {"rankfs/meta/assign", "rankfs/shuffle/plan"},
}

// allows reports whether an entry of the table is of a package.
func allows(entry, pkg string) bool {
	return entry == pkg || strings.HasSuffix(entry, "/") && strings.HasPrefix(pkg, entry)
}

// ourImports has what each package imports, but for those of tests.
func ourImports(t *testing.T) map[string][]string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "rankfs/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	imports := make(map[string][]string)
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); !strings.HasPrefix(f[0], "rankfs/test") {
			imports[f[0]] = f[1:]
		}
	}
	return imports
}

func TestImports(t *testing.T) {
	seen := 0
	for pkg, imports := range ourImports(t) {
		allowed, known := mayImport[pkg]
		if !known {
			t.Errorf("%s is not in the table", pkg)
			continue
		}
		seen++
		for _, a := range allowed {
			if !slices.ContainsFunc(imports, func(i string) bool { return allows(a, i) }) {
				t.Errorf("%s may import %s, and does not", pkg, a)
			}
		}
		for _, i := range imports {
			ours := strings.HasPrefix(i, "rankfs/")
			if ours && !slices.ContainsFunc(allowed, func(a string) bool { return allows(a, i) }) {
				t.Errorf("%s imports %s", pkg, i)
			}
			if strings.Contains(i, "go-fuse") && !strings.HasPrefix(pkg+"/", "rankfs/fs/") {
				t.Errorf("%s imports the FUSE library", pkg)
			}
		}
	}
	if seen != len(mayImport) {
		t.Errorf("%d packages of the table exist, want %d", seen, len(mayImport))
	}
}
