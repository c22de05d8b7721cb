// Calls a server with the package that oapi-codegen makes: URL and TOKEN in the environment.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"reflect"

	"pinfold.dev/openapi/pinfold"
)

var ctx = context.Background()

// must ends the program unless the call was answered with 200 and what is expected.
func must[T any](name string, err error, status int, body []byte, answer *T, isRight func(*T) bool) *T {
	if err != nil || status != http.StatusOK || answer == nil || !isRight(answer) {
		fmt.Fprintf(os.Stderr, "%s: %v %d %s\n", name, err, status, body)
		os.Exit(1)
	}
	fmt.Println("ok", name)
	return answer
}

func gone(name string, err error, status int, body []byte) {
	must(name, err, status, body, &status, func(*int) bool { return true })
}

func is(value *string, expected string) bool { return value != nil && *value == expected }

func groups(client *pinfold.ClientWithResponses) string {
	name, inRoot, size, text := "made-by-go", true, int32(10), "new"
	created, err := client.GroupsServiceCreateGroupWithResponse(ctx, "", nil, pinfold.PinfoldPlatformIamV2Group{Name: name})
	uid := *must("create group", err, created.StatusCode(), created.Body, created.JSON200,
		func(it *pinfold.PinfoldPlatformIamV2Group) bool { return it.Name == name && it.Uid != nil }).Uid
	got, err := client.GroupsServiceGetGroupWithResponse(ctx, uid)
	must("get group", err, got.StatusCode(), got.Body, got.JSON200,
		func(it *pinfold.PinfoldPlatformIamV2Group) bool { return is(it.Uid, uid) })
	listed, err := client.GroupsServiceListGroupsWithResponse(ctx,
		&pinfold.GroupsServiceListGroupsParams{UidpInRoot: &inRoot, Name: &name, PageSize: &size})
	must("list groups", err, listed.StatusCode(), listed.Body, listed.JSON200,
		func(it *pinfold.PinfoldPlatformIamV2ListGroupsResponse) bool { return is((*it.Groups)[0].Uid, uid) })
	updated, err := client.GroupsServiceUpdateGroupWithResponse(ctx, uid, nil,
		pinfold.PinfoldPlatformIamV2GroupPatch{Description: &text})
	must("update group", err, updated.StatusCode(), updated.Body, updated.JSON200,
		func(it *pinfold.PinfoldPlatformIamV2Group) bool { return is(it.Description, text) })
	return uid
}

func repos(client *pinfold.ClientWithResponses, group string) {
	order, mask, text := "name desc", "description", "new"
	created, err := client.ReposServiceCreateRepoWithResponse(ctx, group, nil, pinfold.PinfoldPlatformRegistryV2Repo{Name: "app"})
	uid := *must("create repo", err, created.StatusCode(), created.Body, created.JSON200,
		func(it *pinfold.PinfoldPlatformRegistryV2Repo) bool { return it.Name == "app" && it.Uid != nil }).Uid
	got, err := client.ReposServiceGetRepoWithResponse(ctx, uid)
	must("get repo", err, got.StatusCode(), got.Body, got.JSON200,
		func(it *pinfold.PinfoldPlatformRegistryV2Repo) bool { return is(it.Uid, uid) })
	listed, err := client.ReposServiceListReposWithResponse(ctx,
		&pinfold.ReposServiceListReposParams{UidpDescendantsOf: &group, OrderBy: &order})
	must("list repos", err, listed.StatusCode(), listed.Body, listed.JSON200,
		func(it *pinfold.PinfoldPlatformRegistryV2ListReposResponse) bool { return len(*it.Repos) == 1 })
	updated, err := client.ReposServiceUpdateRepoWithResponse(ctx, uid,
		&pinfold.ReposServiceUpdateRepoParams{UpdateMask: &mask},
		pinfold.PinfoldPlatformRegistryV2RepoPatch{Description: &text})
	must("update repo", err, updated.StatusCode(), updated.Body, updated.JSON200,
		func(it *pinfold.PinfoldPlatformRegistryV2Repo) bool {
			return is(it.Description, text) && it.Name == "app"
		})
	deleted, err := client.ReposServiceDeleteRepoWithResponse(ctx, uid, nil)
	gone("delete repo", err, deleted.StatusCode(), deleted.Body)
}

func accounts(client *pinfold.ClientWithResponses, group string) {
	name, account := "acme", "210987654321"
	installations := []pinfold.PinfoldPlatformIamV2AccountAssociationGitHubInstallation{{InstallationId: "42", Name: &name}}
	github := &pinfold.PinfoldPlatformIamV2AccountAssociationGitHub{
		AppInstallations: &pinfold.PinfoldPlatformIamV2AccountAssociationGitHubAppInstallationsEntry{
			"7": {Installations: &installations},
		},
	}
	isRight := func(it *pinfold.PinfoldPlatformIamV2AccountAssociation) bool {
		return is(it.Uid, group) && reflect.DeepEqual(it.Github, github)
	}
	created, err := client.AccountAssociationsServiceCreateAccountAssociationWithResponse(ctx, group, nil,
		pinfold.PinfoldPlatformIamV2AccountAssociation{Name: "accounts", Github: github})
	must("create account association", err, created.StatusCode(), created.Body, created.JSON200, isRight)
	got, err := client.AccountAssociationsServiceGetAccountAssociationWithResponse(ctx, group)
	must("get account association", err, got.StatusCode(), got.Body, got.JSON200, isRight)
	listed, err := client.AccountAssociationsServiceListAccountAssociationsWithResponse(ctx,
		&pinfold.AccountAssociationsServiceListAccountAssociationsParams{UidpIds: &[]string{group, group}})
	must("list account associations", err, listed.StatusCode(), listed.Body, listed.JSON200,
		func(it *pinfold.PinfoldPlatformIamV2ListAccountAssociationsResponse) bool {
			return isRight(&(*it.AccountAssociations)[0])
		})
	updated, err := client.AccountAssociationsServiceUpdateAccountAssociationWithResponse(ctx, group, nil,
		pinfold.PinfoldPlatformIamV2AccountAssociationPatch{
			Amazon: &pinfold.PinfoldPlatformIamV2AccountAssociationAmazonPatch{Account: &account},
		})
	must("update account association", err, updated.StatusCode(), updated.Body, updated.JSON200,
		func(it *pinfold.PinfoldPlatformIamV2AccountAssociation) bool {
			return isRight(it) && it.Amazon.Account == account
		})
	deleted, err := client.AccountAssociationsServiceDeleteAccountAssociationWithResponse(ctx, group, nil)
	gone("delete account association", err, deleted.StatusCode(), deleted.Body)
}

func main() {
	bearer := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
		return nil
	}
	client, err := pinfold.NewClientWithResponses(os.Getenv("URL"), pinfold.WithRequestEditorFn(bearer))
	if err != nil {
		panic(err)
	}
	group := groups(client)
	repos(client, group)
	accounts(client, group)
	deleted, err := client.GroupsServiceDeleteGroupWithResponse(ctx, group, nil)
	gone("delete group", err, deleted.StatusCode(), deleted.Body)
}
