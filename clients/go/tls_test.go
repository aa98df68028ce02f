package polynym_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/polynym/polynym/clients/go"
	"github.com/polynym/polynym/clients/go/polynymtest"
)

// authority signs certificates in a folder.
type authority struct {
	folder      string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{folder: t.TempDir()}
	a.certificate = &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign}
	a.key = a.sign(t, "ca", a.certificate)
	return a
}

// sign writes NAME.pem and NAME.key.
func (a *authority) sign(t *testing.T, name string, template *x509.Certificate) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	signer := a.key
	if signer == nil {
		signer = key
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a.write(t, name+".pem", "CERTIFICATE", encoded)
	a.write(t, name+".key", "PRIVATE KEY", secret)
	return key
}

func (a *authority) write(t *testing.T, name, kind string, content []byte) {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
	if err := os.WriteFile(a.path(name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (a *authority) path(name string) string { return filepath.Join(a.folder, name) }

func TestTLSWithTokensAndCertificates(t *testing.T) {
	a := newAuthority(t)
	a.sign(t, "server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	a.sign(t, "client", &x509.Certificate{
		DNSNames: []string{"billing.corp"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	token := createToken(t, a.path("callers.toml"))
	entry := "[[caller]]\nname = \"billing\"\nrole = \"admin\"\ntenants = [\"*\"]\n" +
		"certificate = \"dns:billing.corp\"\n"
	appendTo(t, a.path("callers.toml"), entry)
	secured := polynymtest.Start(t, polynymtest.WithArguments(
		"--tls-cert", a.path("server.pem"), "--tls-key", a.path("server.key"),
		"--tls-client-ca", a.path("ca.pem"), "--tls-client-auth", "optional",
		"--credentials", a.path("callers.toml")))
	address := "https://" + secured.Address
	ca := polynym.WithCA(a.path("ca.pem"))
	certificate := polynym.WithCertificate(a.path("client.pem"), a.path("client.key"))

	create(t, connect(t, address, patience, ca, polynym.WithToken(token)), "by-token")
	create(t, connect(t, address, patience, ca, certificate), "by-certificate")

	_, err := createUser(connect(t, address, patience, ca))
	wantError(t, err, polynym.ErrUnauthenticated, "CREDENTIAL_INVALID")
	_, err = createUser(connect(t, address, patience, ca, polynym.WithToken("pn_wrong")))
	wantError(t, err, polynym.ErrUnauthenticated, "CREDENTIAL_INVALID")
	if strings.Contains(err.Error(), "pn_wrong") {
		t.Error("the error has the token")
	}
	// The system does not know the authority.
	hasty := polynym.WithWaitForReady(false)
	_, err = createUser(connect(t, address, patience, hasty, polynym.WithToken(token)))
	if wantError(t, err, polynym.ErrUnavailable, ""); !strings.Contains(err.Error(), "certificate") {
		t.Error(err)
	}
}

// createToken creates the token of an admin.
func createToken(t *testing.T, credentials string) string {
	t.Helper()
	program := os.Getenv("POLYNYM_BIN")
	if program == "" {
		program = "polynym"
	}
	output, err := exec.Command(program, "token", "create", "tests", "--role", "admin",
		"--tenants", "*", "--credentials", credentials).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(output))
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, fmt.Appendf(content, "\n%s", text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
