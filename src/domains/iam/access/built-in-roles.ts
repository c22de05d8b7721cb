// Built-in roles, which exist in every organization. A role includes a smaller one, so each capability is listed once.
import { capabilities, capabilityNumber } from './capabilities.ts'

export type BuiltInRole = { uid: string; name: string; description: string; capabilities: readonly number[] }

/** Capabilities to create, update and delete one kind of resource. */
const changes = (kind: string): string[] => [`${kind}.create`, `${kind}.update`, `${kind}.delete`]

/** Capabilities of API areas that this server does not implement. Existing clients expect them in the roles of the same names. */
const unserved = {
  consoleViewer: [
    'libraries.entitlements.list',
    'libraries.cache.list',
    'libraries.aws_marketplace.subscriptions.list',
    'libraries.request_groups.list',
    'libraries.remote_registries.list',
    'registry.entitlements.list',
    'registry.overlays.list',
    'policies.policy.list',
    'policies.binding.list',
    'policies.decision.list',
    'policies.override.list',
    'packages.entitlements.list',
    'guardener.entitlement.list',
    'guardener.scan.list',
    'guardener.scan.get',
    'skills.entitlements.list',
    'skills.list',
    'libraries.policy.list',
    'libraries.policy.binding.list',
    'libraries.policy.block_event.list',
    'actions.list',
  ],
  viewer: ['guardener.dfc.convert', 'guardener.association.list', 'guardener.actions.migrate'],
  editor: [...changes('libraries.request_groups'), 'libraries.request_groups.items.update', 'registry.overlays.edit'],
  owner: [
    'apk.create',
    'apk.delete',
    'libraries.entitlements.create',
    'libraries.entitlements.delete',
    'libraries.javascript.list',
    'libraries.javascript.create',
    'libraries.dotnet.list',
    'libraries.dotnet.create',
    'libraries.go.list',
    'libraries.go.create',
    'libraries.cache.invalidate',
    'libraries.aws_marketplace.subscriptions.create',
    'libraries.aws_marketplace.subscriptions.update',
    'libraries.request_groups.submit',
    'libraries.remote_registries.create',
    'libraries.remote_registries.delete',
    'registry.entitlements.images.add',
    'registry.entitlements.images.remove',
    'registry.entitlements.images.swap',
    ...changes('policies.policy'),
    ...changes('policies.binding'),
    'policies.override.create',
    'policies.override.delete',
    'repo.check_policies',
    'guardener.association.manage',
    'skills.publish',
    'skills.entitlements.create',
    'skills.entitlements.delete',
    'skills.harden.read',
    'skills.harden.write',
    'skills.harden.cancel',
    ...changes('libraries.policy'),
    ...changes('libraries.policy.binding'),
  ],
}

const consoleViewer = [
  ...unserved.consoleViewer,
  'groups.list',
  'group_invites.list',
  'roles.list',
  'role_bindings.list',
  'record_signatures.list',
  'sboms.list',
  'vuln_reports.list',
  'account_associations.list',
  'identity.list',
  'identity_providers.list',
  'subscriptions.list',
  'repo.list',
  'manifest.list',
  'tag.list',
  'manifest.metadata.list',
  'referrers.list',
  'apk.list',
  'version.list',
  'vuln_report.list',
  'build_report.list',
  'registry.settings.list',
  'libraries.artifacts.list',
  'advisories.list',
  'registry.deployments.list',
]
/** Capabilities that the contract does not have. Only roles of our own list them. */
const ownCapabilities = ['audit.list', 'registry.rules.list']
const auditor = [...consoleViewer, ...ownCapabilities]
const viewer = [...consoleViewer, ...unserved.viewer, 'repo.blobs.get', 'apk.blobs.get', 'terms.list']
const editor = [...viewer, ...unserved.editor, ...changes('subscriptions'), ...changes('repo')]
const owner = [
  ...editor,
  ...unserved.owner,
  ...changes('groups'),
  'group_invites.create',
  'group_invites.delete',
  ...changes('roles'),
  ...changes('role_bindings'),
  ...changes('account_associations'),
  ...changes('identity'),
  ...changes('identity_providers'),
  'identity_providers.scim.manage',
  ...changes('manifest'),
  ...changes('tag'),
  'vuln_report.create',
  'vuln.create',
  'registry.settings.update',
  'libraries.python.list',
  'libraries.python.create',
  'libraries.java.list',
  'libraries.java.create',
  'registry.deployments.create',
  'terms.accept',
  'mcp.tool.call',
]
const registryPull = [
  'groups.list',
  'record_signatures.list',
  'sboms.list',
  'vuln_reports.list',
  'repo.blobs.get',
  'repo.list',
  'manifest.list',
  'tag.list',
  'manifest.metadata.list',
  'referrers.list',
]
const registryPush = [...registryPull, 'groups.create', ...changes('repo'), ...changes('manifest'), ...changes('tag')]
const pullTokenCreator = [
  ...registryPull,
  'roles.list',
  'role_bindings.create',
  'identity.create',
  'apk.list',
  'apk.blobs.get',
]
const advisoriesCreator = ['advisories.list', 'advisories.create', 'advisories.update']
const advisoriesApprover = [...advisoriesCreator, 'advisories.approve']

export const ownerRole = role('4e13a874c5dfc25fa6c8f963f7172906b675d5eb', 'owner', owner, 'Manages everything')
export const operatorRole = role(
  '0d0fcd23ba11ba9ae9af494459be5c9872701241',
  'operator',
  [...capabilities.values()].map(({ name }) => name).filter((name) => !ownCapabilities.includes(name)),
  'Runs the server; only the operator can bind it',
)

/**
 * Version of the built-in roles. It must be increased with each change of a role. An older server that shares the database then
 * keeps the newer roles.
 */
export const builtInVersion = 2

export const builtInRoles: readonly BuiltInRole[] = [
  ownerRole,
  role(
    '83b1aa4bc019baf7baed3bd95a9bf0e5d9ffed54',
    'editor',
    editor,
    'Reads everything, changes repos and subscriptions',
  ),
  role('fb8cf4f24fcd591a8e895de6931ca2bca2198e6b', 'viewer', viewer, 'Reads everything and pulls'),
  role('9d1801bc4fc175ad7d7d40cc163260e49b3c4de3', 'console_viewer', consoleViewer, 'Reads everything but content'),
  role(
    '3e09d9f59d6176e9c758b6f72d6cd762a781fc16',
    'auditor',
    auditor,
    'Reads everything but content, and also policies and the audit log',
  ),
  role('902b87b2d467e207feddc9515e32fd39b33f05eb', 'registry.pull', registryPull, 'Pulls images'),
  role('1d170348733a558be7e883527d0d7e4c60e3ce20', 'registry.push', registryPush, 'Pushes and pulls images'),
  role(
    '76a608d5ae21dc3d50c616feb42fc8cae3e83c12',
    'registry.pull_token_creator',
    pullTokenCreator,
    'Pulls images and creates pull tokens',
  ),
  role('26ce85bbe8c4ae7b9cae303b3e3e62532c70f38a', 'advisories.viewer', ['advisories.list'], 'Reads advisories'),
  role('fa603687bdee037d4d117e91a4ac630091487d44', 'advisories.creator', advisoriesCreator, 'Writes advisories'),
  role('61c3b7f7aaa46f02b6f79b48eb705e712830bcf3', 'advisories.approver', advisoriesApprover, 'Approves advisories'),
  role(
    '287574b3539f05e585fb3c590fc3128d6c937078',
    'advisories.admin',
    [...advisoriesApprover, 'advisories.delete'],
    'Manages advisories',
  ),
  role(
    'eca9c6a38e2f5420db36e9dd46a48db7feb09355',
    'apk.pull',
    ['groups.list', 'apk.list', 'apk.blobs.get'],
    'Pulls packages',
  ),
  librariesPull('665dc6f522fe4eedcd2b17502fb8c20f2c9281a1', 'java'),
  librariesPull('e9ffc2c8ca5d5d3299f8d748a7dfe8c8384ee4c7', 'python'),
  librariesPull('1811270abb386c1fda115f075f179b5ed8ee4a36', 'javascript'),
  librariesPull('983b6e7b6de9caf3698a0bb4a34e8958c5273ec5', 'dotnet'),
  librariesPull('af70bb98f9631e83d5c58a69268d10b825d6cfef', 'go'),
  role('f81b8a8749294fe42260f3300299a89ed139b2cf', 'mcp.tool_user', ['mcp.tool.call'], 'Calls methods as tools'),
  operatorRole,
]

function librariesPull(uid: string, ecosystem: string): BuiltInRole {
  const names = ['libraries.entitlements.list', `libraries.${ecosystem}.list`]
  return role(uid, `libraries.${ecosystem}.pull`, names, 'Pulls libraries')
}

function role(uid: string, name: string, names: readonly string[], description: string): BuiltInRole {
  const numbers = names.map(capabilityNumber).sort((a, b) => a - b)
  return { uid, name, description: `${description} (built-in)`, capabilities: numbers }
}
