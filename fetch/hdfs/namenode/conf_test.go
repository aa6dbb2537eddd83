package namenode_test

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
)

// confDir writes settings, as name=value, of core-site.xml and hdfs-site.xml.
func confDir(t *testing.T, core, hdfs []string) string {
	t.Helper()
	dir := t.TempDir()
	for name, list := range map[string][]string{"core-site.xml": core, "hdfs-site.xml": hdfs} {
		var b strings.Builder
		b.WriteString(`<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="configuration.xsl"?><configuration>`)
		for _, s := range list {
			key, value, _ := strings.Cut(s, "=")
			b.WriteString("<property><name>" + key + "</name>\n<value> " + value + "\n</value><final>true</final></property>\n")
		}
		b.WriteString("</configuration>\n")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFromConf(t *testing.T) {
	federation := []string{
		"dfs.nameservices=ns1,ns2,ns3",
		"dfs.ha.namenodes.ns1=nn1, nn2", "dfs.namenode.rpc-address.ns1.nn1=one.example.com:8020", "dfs.namenode.rpc-address.ns1.nn2=${second}:9000",
		"second=two.example.com",
		"dfs.ha.namenodes.ns2=x", "dfs.namenode.rpc-address.ns2.x=[fe80::1]:8020",
		"dfs.namenode.rpc-address.ns3=three.example.com",
		"dfs.ha.namenodes.broken=a,b", "dfs.namenode.rpc-address.broken.a=h:1",
	}
	rows := []struct {
		name, authority string
		core, hdfs      []string
		want            namenode.Config
		says            string
	}{
		{name: "default", core: []string{"fs.defaultFS=hdfs://nn:9000/"}, want: namenode.Config{Named: true, Addresses: []string{"nn:9000"}}},
		{name: "default without port", core: []string{"fs.default.name=hdfs://nn"}, want: namenode.Config{Named: true, Addresses: []string{"nn:8020"}}},
		{name: "default is a nameservice", core: []string{"fs.defaultFS=hdfs://ns1"}, hdfs: federation,
			want: namenode.Config{Named: true, Addresses: []string{"one.example.com:8020", "two.example.com:9000"}}},
		{name: "nameservice", authority: "ns2", core: []string{"fs.defaultFS=hdfs://ns1"}, hdfs: federation,
			want: namenode.Config{Named: true, Addresses: []string{"[fe80::1]:8020"}}},
		{name: "nameservice of one", authority: "ns3", hdfs: federation, want: namenode.Config{Named: true, Addresses: []string{"three.example.com:8020"}}},
		{name: "address", authority: "h:1", core: []string{"fs.defaultFS=hdfs://ns1"}, hdfs: federation, want: namenode.Config{Named: true, Addresses: []string{"h:1"}}},
		{name: "host", authority: "h", want: namenode.Config{Addresses: []string{"h:8020"}}},
		{name: "IPv6", authority: "[::1]", want: namenode.Config{Addresses: []string{"[::1]:8020"}}},
		{name: "kerberos", authority: "h", core: []string{"hadoop.security.authentication=KERBEROS", "hadoop.rpc.protection=privacy,integrity"},
			hdfs: []string{"dfs.namenode.kerberos.principal=nn/_HOST@EXAMPLE.COM", "dfs.data.transfer.protection=integrity"},
			want: namenode.Config{Addresses: []string{"h:8020"}, Data: namenode.Data{Protection: []string{"integrity"}},
				Kerberos: &namenode.Kerberos{Service: "nn/_HOST@EXAMPLE.COM", Protection: []string{"privacy", "integrity"}}}},
		{name: "data", authority: "h", hdfs: []string{"dfs.client.use.datanode.hostname=true", "dfs.encrypt.data.transfer=TRUE"},
			want: namenode.Config{Addresses: []string{"h:8020"}, Data: namenode.Data{UseHostname: true, Encrypt: true}}},
		{name: "WebHDFS", core: []string{"fs.defaultFS=hdfs://nn:9000"}, hdfs: []string{"dfs.namenode.http-address=0.0.0.0:9870"},
			want: namenode.Config{Named: true, Addresses: []string{"nn:9000"}, Web: []string{"http://nn:9870"}}},
		{name: "WebHDFS of another", authority: "other:9000", core: []string{"fs.defaultFS=hdfs://nn:9000"}, hdfs: []string{"dfs.namenode.http-address=nn:9870"},
			want: namenode.Config{Addresses: []string{"other:9000"}}},
		{name: "WebHDFS of a nameservice", authority: "ns1", hdfs: slices.Concat(federation, []string{"dfs.http.policy=HTTPS_ONLY",
			"dfs.namenode.http-address.ns1.nn1=one:1", "dfs.namenode.https-address.ns1.nn1=one:2", "dfs.namenode.https-address.ns1.nn2=two:2"}),
			want: namenode.Config{Named: true, Addresses: []string{"one.example.com:8020", "two.example.com:9000"}, Web: []string{"https://one:2", "https://two:2"}}},
		{name: "WebHDFS that is guarded less than RPC", core: []string{"fs.defaultFS=hdfs://nn", "hadoop.security.authentication=kerberos", "hadoop.rpc.protection=privacy"},
			hdfs: []string{"dfs.namenode.kerberos.principal=nn/_HOST@EXAMPLE.COM", "dfs.namenode.http-address=nn:9870"},
			want: namenode.Config{Named: true, Addresses: []string{"nn:8020"}, Kerberos: &namenode.Kerberos{Service: "nn/_HOST@EXAMPLE.COM", Protection: []string{"privacy"}}}},
		{name: "endless variable", core: []string{"fs.defaultFS=hdfs://${a}", "a=${b}${b}", "b=${a}${a}"}, says: "names no HDFS"},
		{name: "local", core: []string{"fs.defaultFS=file:///"}, says: `fs.defaultFS "file:///" is not valid`},
		{name: "none", says: `fs.defaultFS is not valid: it is not set; give the directory of core-site.xml by --hadoop-conf or HADOOP_CONF_DIR`},
		{name: "half a nameservice", authority: "broken", hdfs: federation, says: "dfs.namenode.rpc-address.broken.b is not valid: it is missing"},
		{name: "a path", authority: "h/x", says: `authority "h/x"`},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			got, err := namenode.FromConf(confDir(t, r.core, r.hdfs), r.authority)
			if r.says != "" {
				holds(t, err, []string{r.says}, []error{meta.ErrInvalid})
			} else if err != nil || !reflect.DeepEqual(got, r.want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestFromConfFiles(t *testing.T) {
	_, err := namenode.FromConf(t.TempDir(), "h:1")
	holds(t, err, []string{"neither core-site.xml nor"}, []error{meta.ErrNotExist})
	if c, err := namenode.FromConf("", "h:1"); err != nil || c.Addresses[0] != "h:1" {
		t.Errorf("got %+v, %v", c, err)
	}
	dir := t.TempDir()
	for text, says := range map[string]string{
		"<configuration><property>": "core-site.xml is not valid",
		strings.Repeat(" ", 5<<20):  "more than",
	} {
		if err := os.WriteFile(filepath.Join(dir, "core-site.xml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := namenode.FromConf(dir, "h:1")
		holds(t, err, []string{says}, []error{meta.ErrInvalid})
	}
}

func TestConfig(t *testing.T) {
	rows := []struct {
		name   string
		config namenode.Config
		says   string
	}{
		{"no address", namenode.Config{}, "give 1 to"},
		{"many", namenode.Config{Addresses: make([]string, 17)}, "give 1 to"},
		{"no port", namenode.Config{Addresses: []string{"h"}}, `address "h" is not valid`},
		{"no host", namenode.Config{Addresses: []string{":1"}}, `address ":1" is not valid`},
		{"two users", namenode.Config{Addresses: []string{"h:1"}, User: "a", Kerberos: &namenode.Kerberos{}}, "that of the ticket"},
		{"WebHDFS with a path", namenode.Config{Addresses: []string{"h:1"}, Web: []string{"http://h:1/webhdfs"}}, `WebHDFS "http://h:1/webhdfs" is not valid`},
		{"WebHDFS without a port", namenode.Config{Addresses: []string{"h:1"}, Web: []string{"https://h"}}, `WebHDFS "https://h" is not valid`},
		{"WebHDFS by another way", namenode.Config{Addresses: []string{"h:1"}, Web: []string{"ftp://h:1"}}, "give http or https"},
		{"timeout", namenode.Config{Addresses: []string{"h:1"}, Timeout: -1}, "timeout"},
	}
	for _, r := range rows {
		_, err := namenode.New(r.config)
		holds(t, err, []string{r.says}, []error{meta.ErrInvalid})
	}
}
