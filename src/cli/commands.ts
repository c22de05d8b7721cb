// The modules of all commands. A module is loaded if the command line names one of its commands.
import type { Command, Commands, CommandTable } from './framework/command.ts'
import { summaries } from './summaries.ts'

/**
 * The longest prefix of a command's path in this table names its module, which has the command, or commands by the remaining
 * words.
 */
const modules: Readonly<Record<string, () => Promise<Command | Commands>>> = {
  serve: async () => (await import('./server/serve.ts')).serve,
  health: async () => (await import('./server/health.ts')).health,
  auth: async () => (await import('./iam/auth.ts')).auth,
  'auth configure-docker': async () => (await import('./registry/configure-docker.ts')).configureDocker,
  'auth pull-token': async () => (await import('./registry/pull-token.ts')).pullToken,
  'auth push-token': async () => (await import('./registry/push-token.ts')).pushToken,
  'auth delete-account': async () => (await import('./iam/delete-account.ts')).deleteAccount,
  'iam organizations': async () => (await import('./iam/iam.ts')).organizationCommands,
  'iam folders': async () => (await import('./iam/iam.ts')).folderCommands,
  'iam identities': async () => (await import('./iam/iam.ts')).identityCommands,
  'iam identities create': async () => (await import('./iam/identities-create.ts')).identitiesCreate,
  'iam identities check': async () => (await import('./iam/identities-check.ts')).identitiesCheck,
  'iam roles': async () => (await import('./iam/roles.ts')).roleCommands,
  'iam role-bindings': async () => (await import('./iam/iam.ts')).roleBindingCommands,
  'iam invites': async () => (await import('./iam/iam.ts')).inviteCommands,
  'iam access-requests': async () => (await import('./iam/access-requests.ts')).accessRequests,
  'iam identity-providers': async () => (await import('./iam/identity-providers.ts')).providerCommands,
  'iam identity-providers group-mappings': async () => (await import('./iam/group-mappings.ts')).mappingCommands,
  'iam identity-providers scim': async () => (await import('./iam/scim.ts')).scim,
  'iam external-group-role-mappings': async () => (await import('./iam/group-mappings.ts')).mappingCommands,
  'iam account-associations': async () => (await import('./iam/associations.ts')).associationCommands,
  'iam explain': async () => (await import('./iam/explain.ts')).explain,
  'identities check': async () => (await import('./iam/identities-check.ts')).identitiesCheck,
  bindings: async () => (await import('./iam/bindings.ts')).bindings,
  sessions: async () => (await import('./iam/sessions.ts')).sessions,
  'images list': async () => (await import('./registry/images.ts')).imagesList,
  'images repos': async () => (await import('./registry/repos.ts')).repos,
  'images repos follow': async () => (await import('./registry/repos-follow.ts')).followCommands.follow!,
  'images repos following': async () => (await import('./registry/repos-follow.ts')).followCommands.following!,
  'images repos unfollow': async () => (await import('./registry/repos-follow.ts')).followCommands.unfollow!,
  'images repos delete': async () => (await import('./registry/images-delete.ts')).imagesDelete,
  'images repos pull-rules': async () => (await import('./registry/pull-rules.ts')).pullRules,
  'images tags': async () => (await import('./registry/tags.ts')).tags,
  'images retention': async () => (await import('./registry/retention.ts')).retentionRules,
  'images tag-rules': async () => (await import('./registry/retention.ts')).tagRules,
  'images holds': async () => (await import('./registry/retention.ts')).holds,
  'images quarantine': async () => (await import('./registry/retention.ts')).quarantine,
  'images upstreams': async () => (await import('./registry/upstreams.ts')).upstreams,
  'images kept': async () => (await import('./registry/kept/images-kept.ts')).imagesKept,
  'images break-promises': async () => (await import('./registry/kept/images-kept.ts')).imagesBreakPromises,
  'images history': async () => (await import('./registry/images-history.ts')).imagesHistory,
  'images resolve': async () => (await import('./registry/images-resolve.ts')).imagesResolve,
  'images diff': async () => (await import('./vulnerabilities/vulnerabilities-compare.ts')).imagesDiff,
  'images referrers': async () => (await import('./registry/images.ts')).imagesReferrers,
  'images pulls': async () => (await import('./registry/images.ts')).imagesPulls,
  'images unpulled': async () => (await import('./registry/images.ts')).imagesUnpulled,
  'images delete': async () => (await import('./registry/images-delete.ts')).imagesDelete,
  'events subscriptions': async () => (await import('./events/events.ts')).subscriptions,
  'events listen': async () => (await import('./events/events-listen.ts')).eventsListen,
  'events refusals': async () => (await import('./events/events.ts')).refusals,
  'import advisories': async () => (await import('./imports/import-advisories.ts')).importAdvisories,
  'import libraries': async () => (await import('./imports/import-libraries.ts')).importLibraries,
  'import lifecycles': async () => (await import('./imports/import-lifecycles.ts')).importLifecycles,
  'import osv': async () => (await import('./imports/import-osv.ts')).importOsv,
  'import scan-report': async () => (await import('./imports/import-scan-report.ts')).importScanReport,
  'import tag-history': async () => (await import('./imports/import-tag-history.ts')).importTagHistory,
  'libraries sync': async () => (await import('./imports/libraries-sync.ts')).librariesSync,
  blobs: async () => (await import('./server/blobs.ts')).blobs,
  gc: async () => (await import('./server/gc.ts')).gc,
  backup: async () => (await import('./server/backup.ts')).backupCommand,
  restored: async () => (await import('./server/backup.ts')).restoredCommand,
  verify: async () => (await import('./server/verify.ts')).verifyCommand,
  keys: async () => (await import('./server/keys.ts')).keys,
  ledger: async () => (await import('./server/ledger.ts')).ledger,
  quotas: async () => (await import('./server/quotas.ts')).quotas,
  token: async () => (await import('./server/token.ts')).token,
  console: async () => (await import('./server/console.ts')).consoleLink,
  'docker-credential': async () => (await import('./registry/docker-credential.ts')).dockerCredential,
  'kubelet-credential-provider': async () =>
    (await import('./registry/kubelet-credential-provider.ts')).kubeletCredentialProvider,
  migrate: async () => (await import('./server/migrate.ts')).migrate,
  config: async () => (await import('./server/config.ts')).config,
  'config settings': async () => (await import('./server/config-settings.ts')).configSettings,
  'vulnerabilities sync': async () => (await import('./vulnerabilities/vulnerabilities-sync.ts')).vulnerabilitiesSync,
  'vulnerabilities pack': async () => (await import('./vulnerabilities/vulnerabilities-pack.ts')).vulnerabilitiesPack,
  'vulnerabilities status': async () =>
    (await import('./vulnerabilities/vulnerabilities-status.ts')).vulnerabilitiesStatus,
  'vulnerabilities verify': async () =>
    (await import('./vulnerabilities/vulnerabilities-verify.ts')).vulnerabilitiesVerify,
  'vulnerabilities images': async () =>
    (await import('./vulnerabilities/vulnerabilities-images.ts')).vulnerabilitiesImages,
  'vulnerabilities images-with': async () =>
    (await import('./vulnerabilities/vulnerabilities-images.ts')).vulnerabilitiesImagesWith,
  'vulnerabilities packages': async () =>
    (await import('./vulnerabilities/vulnerabilities-images.ts')).vulnerabilitiesPackages,
  'vulnerabilities risks': async () =>
    (await import('./vulnerabilities/vulnerabilities-risks.ts')).vulnerabilitiesRisks,
  'vulnerabilities vex': async () => (await import('./vulnerabilities/vulnerabilities-vex.ts')).vulnerabilitiesVex,
  'vulnerabilities gates': async () =>
    (await import('./vulnerabilities/vulnerabilities-gates.ts')).vulnerabilitiesGates,
  'vulnerabilities scanners': async () =>
    (await import('./vulnerabilities/vulnerabilities-scanners.ts')).vulnerabilitiesScanners,
  'vulnerabilities scan': async () =>
    (await import('./vulnerabilities/vulnerabilities-scanners.ts')).vulnerabilitiesScan,
  'vulnerabilities export': async () =>
    (await import('./vulnerabilities/vulnerabilities-export.ts')).vulnerabilitiesExport,
  'vulnerabilities compare': async () =>
    (await import('./vulnerabilities/vulnerabilities-compare.ts')).vulnerabilitiesCompare,
}

export const commands: CommandTable = {
  summaries,
  usual: { 'images tags': 'list', 'iam identities create': 'claims', config: 'settings' },
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
