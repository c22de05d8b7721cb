// Texts of admission policies, which the API calls gates, and of their exemptions.
import { counted } from './format.ts'

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
  denyUnknown: 'Also deny images with content that could not be scanned',
  minAgeDays: 'Minimum age in days (used only if the policy denies digests that are too young)',
  minMonthsLeft:
    'Minimum months until end of life (used only if the policy denies products that are close to their end of life)',
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
