// Texts of admission policies, which the API calls gates, and of their exemptions.
import { counted, numbers } from './format.ts'

const policies = {
  gates: 'Admission policies',
  gatesText:
    'Admission policies are checked when an image is pulled. Every policy must allow it. They use scan results that are already stored, so no pull waits for a scan.',
  noGates: 'There are no admission policies yet. Pulls are not checked.',
  newGate: 'New admission policy',
  deniedImages: 'Denied images',
  gateKinds: {
    vulnerabilities: 'images with vulnerabilities',
    endOfLife: 'images of products past their end of life',
    cooldown: 'digests that are too young',
    supportWindow: 'images of products that are close to their end of life',
  },
  gateKindTexts: {
    vulnerabilities: 'Compares packages with the vulnerability data of this server',
    endOfLife: 'Uses the end-of-life dates of known products, with the grace period of the organization',
    cooldown: 'Holds back digests that have not had a tag for long enough',
    supportWindow: 'Needs some months of remaining support',
  },
  gateModes: {
    MODE_UNSPECIFIED: 'dry run',
    OFF: 'off',
    DRY_RUN: 'dry run: denies nothing, only reports',
    ENFORCE: 'enforced',
  },
  leastSeverity: 'Minimum severity of vulnerabilities',
  leastSeverities: {
    SEVERITY_UNSPECIFIED: 'any severity',
    LOW: 'low or higher',
    MEDIUM: 'medium or higher',
    HIGH: 'high or higher',
    CRITICAL: 'critical',
  },
  unknownSeverity: 'Vulnerabilities of unknown severity',
  unknownSeverities: {
    UNKNOWN_SEVERITY_UNSPECIFIED: 'unknown severity counts as high',
    COUNTED_AS_HIGH: 'unknown severity counts as high',
    NOT_COUNTED: 'unknown severity is not counted',
  },
  onlyFixable: 'Only vulnerabilities with a fix',
  onlyExploited: 'Only vulnerabilities that are known to be exploited',
  afterDays: 'Grace period in days after a vulnerability was found',
  denyUnknown: 'Images that cannot be scanned completely',
  unknownChoices: { PASS: 'Allow', DENY: 'Deny' },
  unknownTexts: {
    PASS: 'The pull event and the image page show what was not scanned.',
    DENY: 'Also denies images without a package list, and packages without a data source.',
  },
  startDryRun: 'Start dry run',
  saveDryRun: 'Save as dry run',
  saveOff: 'Save and switch off',
  enforcePolicy: 'Enforce policy',
  enforce: 'Enforce…',
  enforceNamed: (name: string) => `Enforce “${name}”?`,
  enforceText: 'The server then refuses pulls of the denied images. To undo it, edit the policy and choose dry run.',
  modeNames: { DRY_RUN: 'Dry run', ENFORCE: 'Enforce', OFF: 'Off' },
  modeTexts: {
    DRY_RUN: 'Allows every pull, and records what would be denied. Recommended first.',
    ENFORCE: 'Refuses pulls of denied images, and names this policy.',
    OFF: 'The policy is not checked.',
  },
  policyName: 'Name',
  policyMode: 'Mode',
  ifEnforced: 'If enforced now',
  wouldDeny: (denied: number, checked: number) =>
    checked === 0
      ? 'No image is tagged here yet.'
      : `Would deny ${denied === 0 ? 'none' : numbers(denied)} of ${counted(checked, 'image')}.`,
  stillWaiting: (count: number) => `${counted(count, 'image')} waiting for a scan would be allowed.`,
  onlyLatest: 'Only the images of the latest tags were checked.',
  moreDenied: (count: number) => `${counted(count, 'more image')}.`,
  previewOff: 'You need permission to see tags and vulnerabilities for a preview.',
  minAgeDays: 'Minimum age in days',
  minMonthsLeft: 'Minimum months until the end of life',
  exemptPulledDays: 'Keep allowing an image for this number of days after an allowed pull',
  deniesEnded: 'products past their end of life',
  deniesYoung: (days: number) => `younger than ${counted(days, 'day')}`,
  deniesSoonEnded: (months: number) => `products with less than ${counted(months, 'month')} until their end of life`,
  deniesVulnerable: (severity: string) => `vulnerabilities: ${severity}`,
  withFix: 'with a fix',
  exploited: 'known to be exploited',
  foundBefore: (days: number) => `found more than ${counted(days, 'day')} ago`,
  orUnscanned: 'or content that could not be scanned',
  deleteGateText:
    'After the deletion, pulls are no longer checked against this policy. Within one second, the images that it denied can be pulled.',
}

const results = {
  gateResults: 'Results of admission policies',
  noGateApplies: 'No admission policy applies to this image. Users with pull permission can pull it.',
  deniedTags: 'Recently updated tags that admission policies deny, or would deny',
  allPass: (count: number) =>
    count === 0
      ? 'No tags have been updated yet, so no image was checked against the policies.'
      : `All of the last ${counted(count, 'updated tag')} pass every policy.`,
  notCompared: (count: number) => `Of these, ${counted(count, 'tag')} could not be scanned completely.`,
  passes: 'allowed',
  passesUnscanned: 'allowed, but not scanned completely',
  isDenied: 'denied',
  wouldBeDenied: 'would be denied',
  checkFailed: 'the check failed',
  byExemption: 'allowed by an exemption',
  noGateExemptions: 'There are no exemptions from admission policies.',
  atMost90Days: 'At most 90 days from now.',
  revokeGateText: 'After the exemption is revoked, admission policies apply to the image again.',
}

export const admissionWords = { ...policies, ...results }
