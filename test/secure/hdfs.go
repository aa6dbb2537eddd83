package secure

import (
	"context"
	"crypto/x509"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/colinmarc/hdfs/v2"
	krb "github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/test/cluster"
	"rankfs/test/eventually"
	"rankfs/test/hadoop"
)

// Settings are those of a Hadoop configuration, by their names.
type Settings map[string]string

// Address is HOST:PORT of the namenode.
func (r *Realm) Address() string { return r.name }

// Configure writes the files that NameNode, DataNode and Java go by, and
// clients may: those of an HDFS with Kerberos and block tokens, and changes.
func (r *Realm) Configure(changes Settings) {
	r.t.Helper()
	r.data = FreePort(r.t)
	conf := Settings{
		"dfs.namenode.http-address": FreePort(r.t),
		"dfs.datanode.address":      r.data,
		"dfs.datanode.ipc.address":  FreePort(r.t),
		"dfs.datanode.http.address": FreePort(r.t),
	}
	maps.Copy(conf, changes)
	r.protection, _, _ = strings.Cut(changes["dfs.data.transfer.protection"], ",")
	r.Conf("conf", conf)
}

// Conf writes the like as a folder of that name, and returns its path.
func (r *Realm) Conf(name string, changes Settings) string {
	r.t.Helper()
	r.settings(name+"/core-site.xml", Settings{
		"fs.defaultFS":                   "hdfs://" + r.name,
		"hadoop.tmp.dir":                 r.Path("tmp"),
		"hadoop.security.authentication": "kerberos",
		"hadoop.security.authorization":  "true",
		"hadoop.rpc.protection":          "authentication,integrity,privacy",
		"hadoop.proxyuser.alice.hosts":   "*",
		"hadoop.proxyuser.alice.users":   "carol",

		"hadoop.http.filter.initializers":               "org.apache.hadoop.security.AuthenticationFilterInitializer",
		"hadoop.http.authentication.type":               "kerberos",
		"hadoop.http.authentication.kerberos.principal": "HTTP/_HOST@" + Name,
		"hadoop.http.authentication.kerberos.keytab":    r.Path("nn.keytab"),
	})
	conf := Settings{
		"dfs.block.access.token.enable":                  "true",
		"dfs.namenode.kerberos.principal":                "nn/_HOST@" + Name,
		"dfs.namenode.keytab.file":                       r.Path("nn.keytab"),
		"dfs.web.authentication.kerberos.principal":      "HTTP/_HOST@" + Name,
		"dfs.web.authentication.kerberos.keytab":         r.Path("nn.keytab"),
		"dfs.namenode.safemode.extension":                "0",
		"dfs.namenode.fs-limits.min-block-size":          "1024",
		"dfs.namenode.block.deletion.unlock.interval.ms": "500", // a thread looks for some to delete as often
		"dfs.replication":                                "1",

		"dfs.datanode.hostname":           "localhost",
		"dfs.datanode.kerberos.principal": "dn/_HOST@" + Name,
		"dfs.datanode.keytab.file":        r.Path("nn.keytab"),
		// Else a datanode wants a port that only root may open, or HTTPS.
		"ignore.secure.ports.for.testing": "true",
	}
	maps.Copy(conf, changes)
	r.settings(name+"/hdfs-site.xml", conf)
	return r.Path(name)
}

// Certificate makes one for the web ports that Configure names, and returns what
// believes it.
func (r *Realm) Certificate() *x509.CertPool {
	r.t.Helper()
	store := []string{"-alias", "web", "-storetype", "PKCS12", "-storepass", "secret", "-keystore", r.Path("web.p12")}
	r.Run("keytool", append([]string{"-genkeypair", "-keyalg", "EC", "-dname", "CN=localhost", "-ext", "san=dns:localhost"}, store...)...)
	r.Run("keytool", append([]string{"-exportcert", "-rfc", "-file", r.Path("web.pem")}, store...)...)
	r.settings("conf/ssl-server.xml", Settings{
		"ssl.server.keystore.location": r.Path("web.p12"), "ssl.server.keystore.type": "PKCS12",
		"ssl.server.keystore.password": "secret", "ssl.server.keystore.keypassword": "secret",
	})
	text, err := os.ReadFile(r.Path("web.pem"))
	if err != nil {
		r.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		r.t.Fatal("no certificate in web.pem")
	}
	return roots
}

func (r *Realm) settings(name string, values Settings) {
	r.t.Helper()
	type property struct {
		Name  string `xml:"name"`
		Value string `xml:"value"`
	}
	var c struct {
		XMLName    xml.Name   `xml:"configuration"`
		Properties []property `xml:"property"`
	}
	for _, k := range slices.Sorted(maps.Keys(values)) {
		c.Properties = append(c.Properties, property{k, values[k]})
	}
	b, err := xml.Marshal(c)
	if err != nil {
		r.t.Fatal(err)
	}
	r.File(name, string(b))
}

func (r *Realm) home() hadoop.Home {
	r.t.Helper()
	home, err := hadoop.Prepare(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return home
}

func (r *Realm) java(class string, args ...string) []string {
	r.t.Helper()
	home := r.home()
	options := append([]string{"-Djava.security.krb5.conf=" + r.Path("krb5.conf"), home.Native()}, hadoop.DaemonOptions...)
	return home.Line(r.Path("conf"), options, class, args...)
}

const (
	nameNode = "org.apache.hadoop.hdfs.server.namenode.NameNode"
	dataNode = "org.apache.hadoop.hdfs.server.datanode.DataNode"
)

// NameNode starts the namenode, which keeps what was stored, and returns when
// it answers.
func (r *Realm) NameNode() (stop func()) {
	r.t.Helper()
	done, err := hadoop.Turn(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	defer done()
	if !r.formatted {
		if err := r.home().Format(r.t.Context(), r.Path("tmp/dfs/name")); err != nil {
			r.t.Fatal(err)
		}
		r.Run("kinit", "-kt", r.Path("nn.keytab"), "nn/localhost")
		r.formatted = true
	}
	serve := r.java(nameNode)
	stop = r.Start(serve[0], serve[1:]...)
	r.await(func(c *namenode.Client) error {
		_, err := c.Stat(r.t.Context(), "/")
		return err
	})
	return stop
}

// DataNode starts the datanode, which keeps what was stored. A reader has to wait
// for its blocks.
func (r *Realm) DataNode() (stop func()) {
	r.t.Helper()
	serve := r.java(dataNode)
	return r.Start(serve[0], serve[1:]...)
}

// AwaitBlocks waits until the namenode knows that the datanode, as it is
// configured now, has the first block of a file.
func (r *Realm) AwaitBlocks(file string) {
	r.t.Helper()
	_, port, _ := net.SplitHostPort(r.data)
	r.await(func(c *namenode.Client) error {
		b, err := c.Locate(r.t.Context(), file, 0, 1)
		if err == nil && (len(b.Blocks) == 0 || len(b.Blocks[0].Replicas) == 0 || !strings.HasSuffix(b.Blocks[0].Replicas[0].Addr, ":"+port)) {
			err = fmt.Errorf("%s has %+v", file, b.Blocks)
		}
		return err
	})
}

// await waits until there is no error.
func (r *Realm) await(holds func(*namenode.Client) error) {
	r.t.Helper()
	names, err := namenode.FromConf(r.Path("conf"), "")
	if err != nil {
		r.t.Fatal(err)
	}
	names.Kerberos.Conf, names.Kerberos.Cache = r.Path("krb5.conf"), r.Path("cache")
	c, err := namenode.New(names)
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(r.t.Context(), hadoop.StartTime)
	defer cancel()
	watch := hadoop.NewWatch()
	err = eventually.Until(ctx, func() error { return holds(c) })
	if err != nil {
		r.t.Fatalf("wait for the HDFS in %s, see the logs: %v; %v", filepath.Base(r.dir), err, watch)
	}
}

// HDFS is a client of the user of the namenode, its superuser. It writes blocks as the
// datanode is configured now, but only in the clear what that does not encrypt.
func (r *Realm) HDFS() *hdfs.Client {
	r.t.Helper()
	conf, err := config.Load(r.Path("krb5.conf"))
	if err != nil {
		r.t.Fatal(err)
	}
	keys, err := keytab.Load(r.Path("nn.keytab"))
	if err != nil {
		r.t.Fatal(err)
	}
	login := krb.NewWithKeytab("nn/localhost", Name, keys, conf, krb.DisablePAFXFAST(true))
	r.t.Cleanup(login.Destroy)
	if err := login.Login(); err != nil {
		r.t.Fatal(err)
	}
	c, err := hdfs.NewClient(hdfs.ClientOptions{
		Addresses: []string{r.name}, KerberosClient: login, KerberosServicePrincipleName: "nn/localhost",
		DataTransferProtection: r.protection,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	return c
}

// Put copies a file or directory into HDFS, as soon as there is a datanode.
func (r *Realm) Put(block int64, from, to string) {
	r.t.Helper()
	c := r.HDFS()
	err := filepath.WalkDir(from, func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := to + strings.TrimPrefix(file, from)
		if e.IsDir() {
			return c.MkdirAll(name, 0o755)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		eventually.Done(r.t, hadoop.StartTime, "put "+name, func() error {
			err := put(c, name, content, block)
			if err != nil {
				c.Remove(name)
			}
			return err
		})
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func put(c *hdfs.Client, name string, content []byte, block int64) error {
	w, err := c.CreateFile(name, 1, block, 0o644)
	if err != nil {
		return err
	}
	if len(content) > 0 { // else the library asks for a block that stays empty
		if _, err := w.Write(content); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return cluster.Finish(w)
}

// Java runs a class of Hadoop as that user.
func (r *Realm) Java(class string, args ...string) {
	r.t.Helper()
	line := r.java(class, args...)
	r.Run(line[0], line[1:]...)
}
