package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

// What the image of the demo has, and nothing else.
const demoRepo, demoTag, demoID = "nginx", "candidate", "CVE-2024-6119"

// tryVulnerabilities asks version 1 for reports, counts and ends of life, each over gRPC and, decoded strictly, over REST. The
// life of the product `nginx` was imported before.
func (c *client) tryVulnerabilities(ctx context.Context) {
	repo, report := c.waitForReport(ctx)
	if report == nil {
		expect("a report of the demo's image", false, "there was none in time")
		return
	}
	digest, _ := report["digest"].(string)
	expect("a report names what is found", len(idsOf(report)) > 0 && contains(idsOf(report), demoID), report)

	today := time.Now().UTC()
	from, to := today.AddDate(0, 0, -1).Format(time.RFC3339), today.Format(time.RFC3339)
	for _, one := range []struct {
		name, request, path, message string
		holds                        func(map[string]any) bool
	}{
		{
			"registry.Vulnerabilities/ListVulnReports", fmt.Sprintf(`{"digest":%q}`, digest),
			"/registry/v1/vuln_reports?" + url.Values{"digest": {digest}}.Encode(), "registry.VulnReportList",
			func(answer map[string]any) bool {
				first := firstOf(answer["items"])
				return first["digest"] == digest && contains(idsOf(first), demoID)
			},
		},
		{
			"registry.Vulnerabilities/GetRawVulnReport", fmt.Sprintf(`{"digest":%q}`, digest),
			"/registry/v1/vuln_reports/raw?" + url.Values{"digest": {digest}}.Encode(), "registry.RawVulnReport",
			func(answer map[string]any) bool {
				text, _ := answer["rawReport"].(string)
				var document map[string]any
				err := json.Unmarshal([]byte(text), &document)
				return err == nil && document["bomFormat"] == "CycloneDX" && contains(idsOf(document), demoID)
			},
		},
		{
			"registry.Vulnerabilities/ListVulnCountReports",
			fmt.Sprintf(`{"references":[{"repo":%q,"tag":%q}],"from":%q,"to":%q}`, repo, demoTag, from, to),
			"/registry/v1/vuln_reports/counts?" + url.Values{"repo": {repo}, "tag": {demoTag}, "from": {from}, "to": {to}}.Encode(),
			"registry.VulnCountReportList", hasCounts,
		},
		{
			"registry.Vulnerabilities/ListCumulativeVulnCountReports",
			fmt.Sprintf(`{"repo":%q,"tag":%q,"from":%q}`, repo, demoTag, from),
			"/registry/v1/vuln_reports/counts_cumulative?" + url.Values{"repo": {repo}, "tag": {demoTag}, "from": {from}}.Encode(),
			"registry.VulnCountReportList", hasCounts,
		},
		{
			"registry.Registry/GetVulnReport", fmt.Sprintf(`{"repoId":%q,"digest":%q}`, repo, digest),
			"/registry/v1/repos/" + repo + "/digests/" + digest + "/vulnreport", "tenant.VulnReport",
			func(answer map[string]any) bool {
				matches, _ := answer["vulnerabilityMatches"].([]any)
				return answer["id"] == repo+"/"+digest && len(matches) > 0
			},
		},
		{
			"registry.Registry/ListEolTags", fmt.Sprintf(`{"uidp":{"childrenOf":%q},"name":%q}`, repo, demoTag),
			"/registry/v1/eoltags?" + url.Values{"uidp.childrenOf": {repo}, "name": {demoTag}}.Encode(), "registry.EolTagList",
			func(answer map[string]any) bool { return firstOf(answer["items"])["name"] == demoTag },
		},
		{
			"registry.Registry/GetPackageVersionMetadata", fmt.Sprintf(`{"package":%q}`, demoRepo),
			"/registry/v1/versions/" + demoRepo, "registry.PackageVersionMetadata",
			func(answer map[string]any) bool {
				ended := firstOf(answer["eolVersions"])
				_, err := time.Parse(time.DateOnly, fmt.Sprint(ended["eolDate"]))
				return err == nil && answer["gracePeriodMonths"] == float64(6)
			},
		},
	} {
		answer, err := c.call(ctx, one.name, one.request)
		expect("call "+one.name, err == nil && one.holds(answer), fmt.Sprint(answer, err))
		members, err := c.restMembers(ctx, one.path, c.token+".platform."+one.message)
		expect("the same over REST fits the vendor's message", err == nil && one.holds(members), fmt.Sprint(members, err))
	}
	_, err := c.call(ctx, "registry.Registry/GetPackageVersionMetadata", `{"package":"no-such-product"}`)
	expect("of a product that nobody knows there is NOT_FOUND", status.Code(err) == codes.NotFound, err)
}

// waitForReport answers with the repo and the newest report of the demo's image, which is read and compared after the start.
func (c *client) waitForReport(ctx context.Context) (string, map[string]any) {
	for ctx.Err() == nil {
		listed, err := c.call(ctx, "registry.Registry/ListRepos", fmt.Sprintf(`{"name":%q}`, demoRepo))
		if err != nil {
			return "", nil
		}
		repos, _ := listed["items"].([]any)
		for _, one := range repos {
			repo, _ := one.(map[string]any)["id"].(string)
			request := fmt.Sprintf(`{"repoId":%q,"tag":%q}`, repo, demoTag)
			reports, err := c.call(ctx, "registry.Vulnerabilities/ListVulnReports", request)
			if report := firstOf(reports["items"]); err == nil && len(report) > 0 {
				return repo, report
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
	return "", nil
}

// restMembers reads an answer strictly, and gives its members as JSON has them.
func (c *client) restMembers(ctx context.Context, path, message string) (map[string]any, error) {
	read, err := c.rest(ctx, "GET", path, "", message)
	if err != nil {
		return nil, err
	}
	text, err := (protojson.MarshalOptions{Resolver: c.types}).Marshal(read)
	if err != nil {
		return nil, err
	}
	var members map[string]any
	return members, json.Unmarshal(text, &members)
}

func hasCounts(answer map[string]any) bool {
	first := firstOf(answer["items"])
	ids, _ := first["cveIds"].([]any)
	counts, _ := first["vulnCounts"].([]any)
	return first["tag"] == demoTag && len(ids) > 0 && len(counts) == 6
}

func firstOf(list any) map[string]any {
	items, _ := list.([]any)
	if len(items) == 0 {
		return nil
	}
	first, _ := items[0].(map[string]any)
	return first
}

func idsOf(report map[string]any) []string {
	found, _ := report["vulnerabilities"].([]any)
	var ids []string
	for _, one := range found {
		members, _ := one.(map[string]any)
		ids = append(ids, fmt.Sprint(members["id"]))
	}
	return ids
}

func contains(all []string, one string) bool {
	for _, each := range all {
		if each == one {
			return true
		}
	}
	return false
}
