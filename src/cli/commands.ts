// The modules of all commands. The program loads a module only if the command line names one of its commands.

import { formerNames, hints, replaced } from './former-names.ts'
import type { Command, Commands, CommandTable } from './framework/command.ts'
import { headings, summaries } from './summaries.ts'

/**
 * Modules by the words of their commands. The longest key that begins the words of a command names its module. The module is the
 * command, or has commands by the remaining words.
 */
const modules: Readonly<Record<string, () => Promise<Command | Commands>>> = {
  serve: async () => (await import('./server/serve.ts')).serve,
  health: async () => (await import('./server/health.ts')).health,
  login: async () => (await import('./iam/auth.ts')).auth.login!,
  logout: async () => (await import('./iam/auth.ts')).auth.logout!,
  whoami: async () => (await import('./iam/auth.ts')).auth.whoami!,
  status: async () => (await import('./iam/status.ts')).status,
  'tokens print': async () => (await import('./iam/auth.ts')).auth['tokens print']!,
  'docker configure': async () => (await import('./registry/configure-docker.ts')).configureDocker,
  'tokens pull': async () => (await import('./registry/pull-token.ts')).pullToken,
  'tokens push': async () => (await import('./registry/push-token.ts')).pushToken,
  'account delete': async () => (await import('./iam/delete-account.ts')).deleteAccount,
  orgs: async () => (await import('./iam/iam.ts')).organizationCommands,
  folders: async () => (await import('./iam/iam.ts')).folderCommands,
  identities: async () => (await import('./iam/iam.ts')).identityCommands,
  'identities create': async () => (await import('./iam/identities-create.ts')).identitiesCreate,
  'identities check': async () => (await import('./iam/identities-check.ts')).identitiesCheck,
  roles: async () => (await import('./iam/roles.ts')).roleCommands,
  members: async () => (await import('./iam/iam.ts')).memberCommands,
  invitations: async () => (await import('./iam/iam.ts')).inviteCommands,
  'access-requests': async () => (await import('./iam/access-requests.ts')).accessRequests,
  'identity-providers': async () => (await import('./iam/identity-providers.ts')).providerCommands,
  'identity-providers group-mappings': async () => (await import('./iam/group-mappings.ts')).mappingCommands,
  'identity-providers domains': async () => (await import('./iam/email-domains.ts')).emailDomainCommands,
  'identity-providers scim': async () => (await import('./iam/scim.ts')).scim,
  'cloud-accounts': async () => (await import('./iam/associations.ts')).associationCommands,
  'identities explain': async () => (await import('./iam/explain.ts')).explain,
  'invitations pending': async () => (await import('./iam/bindings.ts')).bindings.pending!,
  'invitations accept': async () => (await import('./iam/bindings.ts')).bindings.accept!,
  'invitations decline': async () => (await import('./iam/bindings.ts')).bindings.decline!,
  sessions: async () => (await import('./iam/sessions.ts')).sessions,
  'images list': async () => (await import('./registry/images.ts')).imagesList,
  'iam explain': async () => (await import('./iam/explain.ts')).formerExplain,
  search: async () => (await import('./registry/search.ts')).search,
  repos: async () => (await import('./registry/repos.ts')).repos,
  mirrors: async () => (await import('./registry/repos-follow.ts')).mirrorCommands,
  'repos delete': async () => (await import('./registry/images-delete.ts')).imagesDelete,
  'policies cooldown': async () => (await import('./registry/pull-rules.ts')).pullRules,
  tags: async () => (await import('./registry/tags.ts')).tags,
  'policies retention': async () => (await import('./registry/retention.ts')).retentionRules,
  'policies tag-protection': async () => (await import('./registry/retention.ts')).tagRules,
  holds: async () => (await import('./registry/retention.ts')).holds,
  quarantine: async () => (await import('./registry/retention.ts')).quarantine,
  'mirrors upstreams': async () => (await import('./registry/upstreams.ts')).upstreams,
  'images protection': async () => (await import('./registry/retained/images-kept.ts')).imagesKept,
  'images force-delete': async () => (await import('./registry/retained/images-kept.ts')).imagesBreakPromises,
  'tags history': async () => (await import('./registry/images-history.ts')).imagesHistory,
  'tags resolve': async () => (await import('./registry/images-resolve.ts')).imagesResolve,
  'images diff': async () => (await import('./vulnerabilities/vulnerabilities-compare.ts')).imagesDiff,
  'images vulnerabilities': async () =>
    (await import('./vulnerabilities/vulnerabilities-findings.ts')).imagesVulnerabilities,
  'images referrers': async () => (await import('./registry/images.ts')).imagesReferrers,
  'images pulls': async () => (await import('./registry/images.ts')).imagesPulls,
  'images unused': async () => (await import('./registry/images.ts')).imagesUnpulled,
  webhooks: async () => (await import('./events/events.ts')).subscriptions,
  'events listen': async () => (await import('./events/events-listen.ts')).eventsListen,
  'audit list': async () => (await import('./events/audit.ts')).auditList,
  'audit export': async () => (await import('./events/audit.ts')).auditExport,
  'audit refusals': async () => (await import('./events/events.ts')).refusals,
  'advisories import': async () => (await import('./imports/import-advisories.ts')).importAdvisories,
  'libraries import': async () => (await import('./imports/import-libraries.ts')).importLibraries,
  'lifecycles import': async () => (await import('./imports/import-lifecycles.ts')).importLifecycles,
  'vulnerabilities import': async () => (await import('./imports/import-osv.ts')).importOsv,
  'images import-scan': async () => (await import('./imports/import-scan-report.ts')).importScanReport,
  'tags import': async () => (await import('./imports/import-tag-history.ts')).importTagHistory,
  'libraries sync': async () => (await import('./imports/libraries-sync.ts')).librariesSync,
  'server blobs': async () => (await import('./server/blobs.ts')).blobs,
  'server gc': async () => (await import('./server/gc.ts')).gc,
  'server backup': async () => (await import('./server/backup.ts')).backupCommand,
  'server complete-restore': async () => (await import('./server/backup.ts')).restoredCommand,
  verify: async () => (await import('./server/verify.ts')).formerVerify,
  'tags verify': async () => (await import('./server/verify.ts')).tagsVerify,
  'server verify': async () => (await import('./server/verify.ts')).verifyCommand,
  'server keys': async () => (await import('./server/keys.ts')).keys,
  'server transparency-log': async () => (await import('./server/ledger.ts')).ledger,
  'server quotas': async () => (await import('./server/quotas.ts')).quotas,
  token: async () => (await import('./server/token.ts')).token,
  'server console': async () => (await import('./server/console.ts')).consoleLink,
  'docker-credential': async () => (await import('./registry/docker-credential.ts')).dockerCredential,
  'kubelet-credential-provider': async () =>
    (await import('./registry/kubelet-credential-provider.ts')).kubeletCredentialProvider,
  migrate: async () => (await import('./server/migrate.ts')).migrate,
  config: async () => (await import('./server/config.ts')).config,
  'config settings': async () => (await import('./server/config-settings.ts')).configSettings,
  'server config': async () => (await import('./server/config-settings.ts')).configSettings,
  'vulnerabilities sync': async () => (await import('./vulnerabilities/vulnerabilities-sync.ts')).vulnerabilitiesSync,
  'vulnerabilities pack': async () => (await import('./vulnerabilities/vulnerabilities-pack.ts')).vulnerabilitiesPack,
  'vulnerabilities status': async () =>
    (await import('./vulnerabilities/vulnerabilities-status.ts')).vulnerabilitiesStatus,
  'vulnerabilities verify': async () =>
    (await import('./vulnerabilities/vulnerabilities-verify.ts')).vulnerabilitiesVerify,
  'vulnerabilities images': async () =>
    (await import('./vulnerabilities/vulnerabilities-images.ts')).vulnerabilitiesImages,
  'packages images': async () =>
    (await import('./vulnerabilities/vulnerabilities-images.ts')).vulnerabilitiesImagesWith,
  'packages list': async () => (await import('./vulnerabilities/vulnerabilities-images.ts')).vulnerabilitiesPackages,
  'vulnerabilities risks': async () =>
    (await import('./vulnerabilities/vulnerabilities-risks.ts')).vulnerabilitiesRisks,
  'vulnerabilities vex': async () => (await import('./vulnerabilities/vulnerabilities-vex.ts')).vulnerabilitiesVex,
  'policies admission': async () => (await import('./vulnerabilities/vulnerabilities-gates.ts')).vulnerabilitiesGates,
  'server scanners': async () =>
    (await import('./vulnerabilities/vulnerabilities-scanners.ts')).vulnerabilitiesScanners,
  'images scan': async () => (await import('./vulnerabilities/vulnerabilities-scanners.ts')).vulnerabilitiesScan,
  'vulnerabilities export': async () =>
    (await import('./vulnerabilities/vulnerabilities-export.ts')).vulnerabilitiesExport,
  'vulnerabilities compare': async () =>
    (await import('./vulnerabilities/vulnerabilities-compare.ts')).vulnerabilitiesCompare,
}

export const commands: CommandTable = {
  summaries,
  headings,
  usual: { tags: 'list', 'identities create': 'claims', config: 'settings' },
  former: formerNames,
  replaced,
  hints,
  async load(path) {
    const words = path.split(' ')
    for (let length = words.length; length > 0; length--) {
      const found = await modules[words.slice(0, length).join(' ')]?.()
      if (found) return isCommand(found) ? found : found[words.slice(length).join(' ')]!
    }
    throw new Error(`the command ${path} has no module`)
  },
}

function isCommand(found: Command | Commands): found is Command {
  return typeof found.run === 'function'
}
