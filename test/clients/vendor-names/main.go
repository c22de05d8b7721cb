// Speaks to a server as a client of another product does: by that product's names alone, with descriptors that it gets by
// reflection, and with decoders that refuse what they do not know. Ends with one line: N passed, N failed.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	reflection "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

var passed, failed int

func expect(name string, ok bool, seen any) {
	if ok {
		passed++
		fmt.Println("ok  ", name)
		return
	}
	failed++
	fmt.Printf("FAIL %s\n%v\n", name, seen)
}

// client calls methods by the names in `files`, which came from the server under the vendor's token.
type client struct {
	url, token, bearer string
	conn               *grpc.ClientConn
	files              *protoregistry.Files
	types              *dynamicpb.Types
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: vendor-names URL VENDOR TOKEN ORGANISATION")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	c, services, err := open(ctx, os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	org := os.Args[4]
	c.tryNames(services)
	c.tryVersions(ctx, org)
	c.tryErrors(ctx, org)
	c.tryMembers(ctx, org)
	c.tryEvents(ctx, org)
	later, end := context.WithTimeout(context.Background(), 5*time.Minute)
	defer end()
	c.tryVulnerabilities(later)
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}

func open(ctx context.Context, url, token, bearer string) (*client, []string, error) {
	conn, err := grpc.Dial(strings.TrimPrefix(url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, nil, err
	}
	stream, err := reflection.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		return nil, nil, err
	}
	r := &reflector{stream: stream, protos: map[string]*descriptorpb.FileDescriptorProto{}}
	services, err := r.services()
	if err != nil {
		return nil, nil, err
	}
	for _, name := range services {
		if strings.HasPrefix(name, token+".") {
			if err := r.symbol(name); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	iam := token + ".platform.iam."
	for _, name := range []string{iam + "TermsNotAcceptedDetail", iam + "v2.TermsNotAcceptedDetail", "google.rpc.ErrorInfo"} {
		if err := r.symbol(name); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	files, err := r.files()
	if err != nil {
		return nil, nil, err
	}
	c := &client{url: url, token: token, bearer: bearer, conn: conn, files: files, types: dynamicpb.NewTypes(files)}
	return c, services, nil
}

// reflector gathers the files of a server, with all that they import.
type reflector struct {
	stream reflection.ServerReflection_ServerReflectionInfoClient
	protos map[string]*descriptorpb.FileDescriptorProto
}

func (r *reflector) ask(req *reflection.ServerReflectionRequest) (*reflection.ServerReflectionResponse, error) {
	if err := r.stream.Send(req); err != nil {
		return nil, err
	}
	res, err := r.stream.Recv()
	if err == nil && res.GetErrorResponse() != nil {
		err = errors.New(res.GetErrorResponse().GetErrorMessage())
	}
	return res, err
}

func (r *reflector) services() ([]string, error) {
	res, err := r.ask(&reflection.ServerReflectionRequest{
		MessageRequest: &reflection.ServerReflectionRequest_ListServices{},
	})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, service := range res.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
	}
	return names, nil
}

func (r *reflector) symbol(name string) error {
	return r.add(&reflection.ServerReflectionRequest{
		MessageRequest: &reflection.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: name},
	})
}

func (r *reflector) add(req *reflection.ServerReflectionRequest) error {
	res, err := r.ask(req)
	if err != nil {
		return err
	}
	var missing []string
	for _, bytes := range res.GetFileDescriptorResponse().GetFileDescriptorProto() {
		file := &descriptorpb.FileDescriptorProto{}
		if err := proto.Unmarshal(bytes, file); err != nil {
			return err
		}
		if r.protos[file.GetName()] == nil {
			r.protos[file.GetName()] = file
			missing = append(missing, file.GetDependency()...)
		}
	}
	for _, path := range missing {
		if r.protos[path] != nil {
			continue
		}
		err := r.add(&reflection.ServerReflectionRequest{
			MessageRequest: &reflection.ServerReflectionRequest_FileByFilename{FileByFilename: path},
		})
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func (r *reflector) files() (*protoregistry.Files, error) {
	set := &descriptorpb.FileDescriptorSet{}
	for _, file := range r.protos {
		set.File = append(set.File, file)
	}
	return protodesc.NewFiles(set)
}

// call sends a request as JSON and answers with the response as JSON, by the method's name below the vendor's.
func (c *client) call(ctx context.Context, name, request string) (map[string]any, error) {
	full := protoreflect.FullName(c.token + ".platform." + strings.ReplaceAll(name, "/", "."))
	found, err := c.files.FindDescriptorByName(full)
	if err != nil {
		return nil, err
	}
	method := found.(protoreflect.MethodDescriptor)
	in, out := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
	if err := (protojson.UnmarshalOptions{Resolver: c.types}).Unmarshal([]byte(request), in); err != nil {
		return nil, err
	}
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+c.bearer)
	if err := c.conn.Invoke(ctx, "/"+c.token+".platform."+name, in, out); err != nil {
		return nil, err
	}
	text, err := (protojson.MarshalOptions{Resolver: c.types}).Marshal(out)
	if err != nil {
		return nil, err
	}
	var members map[string]any
	return members, json.Unmarshal(text, &members)
}

// rest sends a body and decodes the answer into a message of the vendor's, strictly.
func (c *client) rest(ctx context.Context, method, path, body, message string) (*dynamicpb.Message, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.bearer)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	if message == "" {
		message = "google.rpc.Status"
	}
	found, err := c.types.FindMessageByName(protoreflect.FullName(message))
	if err != nil {
		return nil, err
	}
	out := found.New().Interface().(*dynamicpb.Message)
	if err := (protojson.UnmarshalOptions{Resolver: c.types}).Unmarshal(text, out); err != nil {
		return nil, fmt.Errorf("%w in %s", err, text)
	}
	return out, nil
}

func (c *client) tryNames(services []string) {
	known := map[string]bool{}
	for _, name := range services {
		known[name] = true
	}
	for _, name := range services {
		if strings.HasPrefix(name, "pinfold.platform.") {
			theirs := c.token + strings.TrimPrefix(name, "pinfold")
			expect("reflection lists "+theirs, known[theirs], services)
		}
	}
	for _, name := range []string{"iam", "iam.v2", "iam.v2beta1", "registry", "registry.v2beta1", "vulnerabilities.v1"} {
		count := c.files.NumFilesByPackage(protoreflect.FullName(c.token + ".platform." + name))
		expect("reflection describes "+name, count > 0, count)
	}
}

func (c *client) tryVersions(ctx context.Context, org string) {
	for name, request := range map[string]string{
		"iam.v2.GroupsService/GetGroup":                    fmt.Sprintf(`{"uid":%q}`, org),
		"iam.v2beta1.GroupsService/GetGroup":               fmt.Sprintf(`{"uid":%q}`, org),
		"iam.Groups/List":                                  fmt.Sprintf(`{"id":%q}`, org),
		"iam.v2beta1.RolesService/ListRoles":               `{"name":"owner"}`,
		"registry.v2beta1.ReposService/ListRepos":          `{}`,
		"registry.Registry/ListRepos":                      `{}`,
		"events.v2.SubscriptionsService/ListSubscriptions": `{}`,
		"ping.v2.PingService/Ping":                         `{}`,
	} {
		answer, err := c.call(ctx, name, request)
		expect("call "+name, err == nil && answer != nil, err)
	}
	made, err := c.call(ctx, "registry.v2beta1.ReposService/CreateRepo", fmt.Sprintf(`{"parent":%q,"repo":{"name":"by-name"}}`, org))
	expect("create a repo by the name of the preview", err == nil && made["name"] == "by-name", err)
	listed, err := c.call(ctx, "registry.Registry/ListRepos", `{"name":"by-name"}`)
	items, _ := listed["items"].([]any)
	expect("find it by the name of version 1", err == nil && len(items) == 1, err)
}

func (c *client) tryErrors(ctx context.Context, org string) {
	detailOf := func(name, request string) (codes.Code, string) {
		_, err := c.call(ctx, name, request)
		got := status.Convert(err)
		var shown []string
		for _, detail := range got.Proto().GetDetails() {
			text, err := (protojson.MarshalOptions{Resolver: c.types}).Marshal(detail)
			if err != nil {
				text = []byte(err.Error())
			}
			shown = append(shown, string(text))
		}
		return got.Code(), strings.Join(shown, "\n")
	}
	missing := org + "/0000000000000000"
	code, shown := detailOf("iam.v2.GroupsService/GetGroup", fmt.Sprintf(`{"uid":%q}`, missing))
	theirs := strings.Contains(shown, "iam."+c.token+".dev/Group") && strings.Contains(shown, `"`+c.token+`.dev"`)
	expect("an error names resource and domain as the vendor does", code == codes.NotFound && theirs && !strings.Contains(shown, "pinfold"), shown)
	for name, request := range map[string]string{
		"iam.v2.GroupsService/UpdateGroup":      fmt.Sprintf(`{"group":{"uid":%q,"description":"x"}}`, org),
		"iam.v2beta1.GroupsService/UpdateGroup": fmt.Sprintf(`{"group":{"uid":%q,"description":"x"}}`, org),
		"iam.Groups/Update":                     fmt.Sprintf(`{"id":%q,"name":"x"}`, org),
	} {
		code, shown := detailOf(name, request)
		version := ""
		if strings.Contains(name, ".v2") {
			version = "v2."
		}
		want := "type.googleapis.com/" + c.token + ".platform.iam." + version + "TermsNotAcceptedDetail"
		read := strings.Contains(shown, want) && strings.Contains(shown, "terms.v1")
		expect(name+" waits for the terms with a detail that can be read", code == codes.FailedPrecondition && read, shown)
	}
}

func (c *client) tryMembers(ctx context.Context, org string) {
	identity, err := c.call(ctx, "iam.v2.IdentitiesService/CreateIdentity",
		fmt.Sprintf(`{"parent":%q,"identity":{"name":"service","servicePrincipal":"SERVICE_PRINCIPAL_INGESTER"}}`, org))
	if err != nil {
		expect("create an identity of a service", false, err)
		return
	}
	bindings := fmt.Sprintf(`{"name":"clouds",%q:{"serviceBindings":{"INGESTER":%q}}}`, c.token, identity["uid"])
	type_ := c.token + ".platform.iam.v2.AccountAssociation"
	_, err = c.rest(ctx, "POST", "/iam/v2/accountAssociations/"+org, bindings, type_)
	expect("an association over REST fits the vendor's message", err == nil, err)
	_, err = c.rest(ctx, "GET", "/iam/v2beta1/accountAssociations/"+org, "", type_)
	expect("and so it does by the preview's path", err == nil, err)
	_, err = c.rest(ctx, "PUT", "/iam/v1/account_associations/"+org, bindings, c.token+".platform.iam.AccountAssociations")
	expect("and in version 1", err == nil, err)
	got, err := c.call(ctx, "iam.v2.AccountAssociationsService/UpdateAccountAssociation",
		fmt.Sprintf(`{"accountAssociation":{"uid":%q,"description":"x"},"updateMask":%q}`, org, c.token+",description"))
	expect("a mask names the vendor's member", err == nil && got[c.token] == nil && got["description"] == "x", fmt.Sprint(got, err))
}

func (c *client) tryEvents(ctx context.Context, org string) {
	made, err := c.call(ctx, "events.Subscriptions/Create",
		fmt.Sprintf(`{"parentId":%q,"subscription":{"sink":"https://hooks.example.com/"}}`, org))
	expect("subscribe by the name of version 1", err == nil && made["id"] != nil, err)
	if err == nil {
		_, err = c.call(ctx, "events.v2beta1.SubscriptionsService/DeleteSubscription", fmt.Sprintf(`{"uid":%q}`, made["id"]))
		expect("unsubscribe by the name of the preview", err == nil, err)
	}
}
