"""Calls a server with the package that openapi-python-client makes: URL and TOKEN in the environment."""

import os

from pinfold import AuthenticatedClient
from pinfold.api.account_associations_service import (
    account_associations_service_create_account_association as create_association,
    account_associations_service_delete_account_association as delete_association,
    account_associations_service_get_account_association as get_association,
    account_associations_service_list_account_associations as list_associations,
    account_associations_service_update_account_association as update_association,
)
from pinfold.api.groups_service import (
    groups_service_create_group as create_group,
    groups_service_delete_group as delete_group,
    groups_service_get_group as get_group,
    groups_service_list_groups as list_groups,
    groups_service_update_group as update_group,
)
from pinfold.api.repos_service import (
    repos_service_create_repo as create_repo,
    repos_service_delete_repo as delete_repo,
    repos_service_get_repo as get_repo,
    repos_service_list_repos as list_repos,
    repos_service_update_repo as update_repo,
)
from pinfold.models import (
    PinfoldPlatformIamV2AccountAssociation as Association,
    PinfoldPlatformIamV2AccountAssociationAmazonPatch as AmazonPatch,
    PinfoldPlatformIamV2AccountAssociationGitHub as GitHub,
    PinfoldPlatformIamV2AccountAssociationPatch as AssociationPatch,
    PinfoldPlatformIamV2Group as Group,
    PinfoldPlatformIamV2GroupPatch as GroupPatch,
    PinfoldPlatformRegistryV2Repo as Repo,
    PinfoldPlatformRegistryV2RepoPatch as RepoPatch,
)

client = AuthenticatedClient(base_url=os.environ["URL"], token=os.environ["TOKEN"])


def must(name, operation, is_right, /, *args, **kwargs):
    answer = operation.sync_detailed(*args, client=client, **kwargs)
    if answer.status_code != 200 or not is_right(answer.parsed):
        raise SystemExit(f"{name}: {answer.status_code} {answer.content!r}")
    print(f"ok {name}")
    return answer.parsed


def gone(name, operation, uid):
    must(name, operation, lambda it: True, uid)


def groups():
    body = Group(name="made-by-python")
    uid = must("create group", create_group, lambda it: it.name == body.name, "", body=body).uid
    must("get group", get_group, lambda it: it.uid == uid, uid)
    found = {"uidp_in_root": True, "name": body.name, "page_size": 10}
    must("list groups", list_groups, lambda it: it.groups[0].uid == uid, **found)
    patch = GroupPatch(description="new")
    must("update group", update_group, lambda it: it.description == "new", uid, body=patch)
    return uid


def repos(group):
    uid = must("create repo", create_repo, lambda it: it.name == "app", group, body=Repo(name="app")).uid
    must("get repo", get_repo, lambda it: it.uid == uid, uid)
    found = {"uidp_descendants_of": group, "order_by": "name desc"}
    must("list repos", list_repos, lambda it: len(it.repos) == 1, **found)
    masked = {"body": RepoPatch(description="new"), "update_mask": "description"}
    must("update repo", update_repo, lambda it: it.description == "new" and it.name == "app", uid, **masked)
    gone("delete repo", delete_repo, uid)


def accounts(group):
    github = {"appInstallations": {"7": {"installations": [{"installationId": "42", "name": "acme"}]}}}
    body = Association(name="accounts", github=GitHub.from_dict(github))

    def is_right(it):
        return it.uid == group and it.github.to_dict() == github

    must("create account association", create_association, is_right, group, body=body)
    must("get account association", get_association, is_right, group)
    found = {"uidp_ids": [group, group]}
    must("list account associations", list_associations, lambda it: is_right(it.account_associations[0]), **found)
    patch = AssociationPatch(amazon=AmazonPatch(account="210987654321"))
    changed = lambda it: is_right(it) and it.amazon.account == "210987654321"
    must("update account association", update_association, changed, group, body=patch)
    gone("delete account association", delete_association, group)


made = groups()
repos(made)
accounts(made)
gone("delete group", delete_group, made)
