// The roles that exist everywhere. Each builds on a smaller one, so a capability is named once.
import { capabilities, capabilityNumber } from './capabilities.ts'

export type BuiltInRole = { uid: string; name: string; description: string; capabilities: readonly number[] }

const consoleViewer = [
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
const viewer = [...consoleViewer, 'repo.blobs.get', 'apk.blobs.get', 'terms.list']
const editor = [
  ...viewer,
  'subscriptions.create',
  'subscriptions.update',
  'subscriptions.delete',
  'repo.create',
  'repo.update',
  'repo.delete',
]
const owner = [
  ...editor,
  'groups.create',
  'groups.update',
  'groups.delete',
  'group_invites.create',
  'group_invites.delete',
  'roles.create',
  'roles.update',
  'roles.delete',
  'role_bindings.create',
  'role_bindings.update',
  'role_bindings.delete',
  'account_associations.create',
  'account_associations.update',
  'account_associations.delete',
  'identity.create',
  'identity.update',
  'identity.delete',
  'identity_providers.create',
  'identity_providers.update',
  'identity_providers.delete',
  'identity_providers.scim.manage',
  'manifest.create',
  'manifest.update',
  'manifest.delete',
  'tag.create',
  'tag.update',
  'tag.delete',
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
const registryPush = [
  ...registryPull,
  'groups.create',
  'repo.create',
  'repo.update',
  'repo.delete',
  'manifest.create',
  'manifest.update',
  'manifest.delete',
  'tag.create',
  'tag.update',
  'tag.delete',
]
const pullTokenCreator = [...registryPull, 'roles.list', 'role_bindings.create', 'identity.create']
const advisoriesCreator = ['advisories.list', 'advisories.create', 'advisories.update']
const advisoriesApprover = [...advisoriesCreator, 'advisories.approve']

export const ownerRole = role('4e13a874c5dfc25fa6c8f963f7172906b675d5eb', 'owner', owner, 'Manages everything')
export const operatorRole = role(
  '0d0fcd23ba11ba9ae9af494459be5c9872701241',
  'operator',
  [...capabilities.values()].map((capability) => capability.name),
  'Runs the server; only the operator can bind it',
)

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
  operatorRole,
]

function role(uid: string, name: string, names: readonly string[], description: string): BuiltInRole {
  const numbers = names.map(capabilityNumber).sort((a, b) => a - b)
  return { uid, name, description: `${description} (built-in)`, capabilities: numbers }
}
