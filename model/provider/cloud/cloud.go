// SPDX-License-Identifier: Apache-2.0

// Package cloud signs the requests to services of AWS, Azure and Google Cloud with
// the credentials of the machine, by the vendors' own libraries, and reads the event
// streams of Bedrock.
//
// Begin with [New]. The credentials are found as each vendor documents it for its
// SDKs: environment variables, files of its command line tool, the identity of the
// machine. They are looked up at the first request.
package cloud

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A Signer signs requests. It is safe for concurrent use.
type Signer struct {
	client *http.Client
	now    func() time.Time

	mu     sync.Mutex
	aws    map[string]aws.Config // by region
	azure  azcore.TokenCredential
	google oauth2.TokenSource
}

// New returns a signer that asks Azure and Google for tokens with client; nil:
// [http.DefaultClient].
func New(client *http.Client) *Signer {
	if client == nil {
		client = http.DefaultClient
	}
	return &Signer{client: client, now: time.Now, aws: map[string]aws.Config{}}
}

// Scopes of the tokens.
const (
	azureScope  = "https://cognitiveservices.azure.com/.default"
	googleScope = "https://www.googleapis.com/auth/cloud-platform"
)

// Sign adds the signature or the token for s to a request that is complete. The error
// is of kind Denied if there are no credentials.
func (g *Signer) Sign(ctx context.Context, s *model.Service, req *http.Request) error {
	var err error
	switch s.Auth.Kind {
	case model.AuthAWS:
		err = g.signAWS(ctx, s, req)
	case model.AuthAzure:
		err = g.signAzure(ctx, req)
	case model.AuthGoogle:
		err = g.signGoogle(req)
	default:
		return nil
	}
	if err != nil {
		return artel.Errorf(artel.Denied, "cloud.Sign", string(s.ID), "no credentials of %s: %w", s.Auth.Kind, err)
	}
	return nil
}

// bedrockHost matches the hosts of Bedrock, which name the region.
var bedrockHost = regexp.MustCompile(`^bedrock(?:-runtime)?(?:-fips)?\.([a-z0-9-]+)\.`)

func (g *Signer) signAWS(ctx context.Context, s *model.Service, req *http.Request) error {
	region := s.Auth.Region
	if m := bedrockHost.FindStringSubmatch(req.URL.Hostname()); region == "" && m != nil {
		region = m[1]
	}
	c, err := g.awsConfig(ctx, region)
	if err != nil {
		return err
	}
	credentials, err := c.Credentials.Retrieve(ctx)
	if err != nil {
		return err
	}
	sum, err := payloadHash(req)
	if err != nil {
		return err
	}
	return v4.NewSigner().SignHTTP(ctx, credentials, req, sum, "bedrock", c.Region, g.now())
}

func (g *Signer) awsConfig(ctx context.Context, region string) (aws.Config, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c, ok := g.aws[region]; ok {
		return c, nil
	}
	// The library uses a client of its own, to which AWS_CA_BUNDLE applies.
	var options []func(*config.LoadOptions) error
	if region != "" {
		options = append(options, config.WithRegion(region))
	}
	c, err := config.LoadDefaultConfig(ctx, options...)
	if err == nil {
		g.aws[region] = c
	}
	return c, err
}

// payloadHash returns the SHA-256 of a request's body, which can be read again.
func payloadHash(req *http.Request) (string, error) {
	h := sha256.New()
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return "", err
		}
		defer body.Close()
		if _, err := io.Copy(h, body); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (g *Signer) signAzure(ctx context.Context, req *http.Request) error {
	credential, err := g.azureCredential()
	if err != nil {
		return err
	}
	token, err := credential.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{azureScope}}) // cached
	if err == nil {
		req.Header.Set("Authorization", "Bearer "+token.Token)
	}
	return err
}

func (g *Signer) azureCredential() (azcore.TokenCredential, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.azure != nil {
		return g.azure, nil
	}
	o := azidentity.DefaultAzureCredentialOptions{ClientOptions: policy.ClientOptions{Transport: g.client}}
	// Microsoft's instance discovery does not know an authority in a closed network.
	if u, err := url.Parse(os.Getenv("AZURE_AUTHORITY_HOST")); err == nil && u.Host != "" && !strings.HasPrefix(u.Host, "login.") {
		o.DisableInstanceDiscovery = true
	}
	c, err := azidentity.NewDefaultAzureCredential(&o)
	if err == nil {
		g.azure = c
	}
	return g.azure, err
}

func (g *Signer) signGoogle(req *http.Request) error {
	source, err := g.googleSource()
	if err != nil {
		return err
	}
	token, err := source.Token() // cached
	if err == nil {
		token.SetAuthHeader(req)
	}
	return err
}

func (g *Signer) googleSource() (oauth2.TokenSource, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.google != nil {
		return g.google, nil
	}
	// The source outlives the request.
	c, err := google.FindDefaultCredentials(context.WithValue(context.Background(), oauth2.HTTPClient, g.client), googleScope)
	if err != nil {
		return nil, err
	}
	g.google = c.TokenSource
	return g.google, nil
}
