// Texts of cooldown policies and their exemptions.
import { counted } from './format.ts'

export const cooldownWords = {
  cooldownPolicies: 'Cooldown policies',
  cooldownText:
    'A cooldown policy sets a minimum age for the images that some identities can pull. It applies to pulls by tag and by digest.',
  noCooldownPolicies: 'There are no cooldown policies yet. Users with pull permission can pull new images immediately.',
  newCooldownPolicy: 'New cooldown policy',
  appliesTo: 'Applies to',
  allInGroup: (group: string) => `all identities in and below ${group}`,
  identityCount: (count: number) => counted(count, 'identity', 'identities'),
  identitiesOfPolicy: 'Identities',
  groupOfIdentities: 'Or all identities in and below the group with this UID',
  minAge: 'Minimum age',
  holdAge: 'Hold time',
  countFrom: 'Age is measured as',
  countFroms: {
    COUNT_FROM_UNSPECIFIED: 'time since the pulled tag got the digest',
    TAG: 'time since the pulled tag got the digest',
    REPO: 'time since any tag of the repository got the digest',
  },
  tooYoungImages: 'Images that are too young',
  cooldownModes: {
    MODE_UNSPECIFIED: 'unknown',
    OBSERVE: 'dry run: the image is served, and the pull event reports it',
    SERVE_OLDER: 'serve an older image instead',
    DENY: 'deny the pull',
  },
  deleteCooldownText: 'Within one second after the deletion, the images that the policy holds back can be pulled.',
  tooYoungTags: 'Recently updated tags that are too young',
  allOldEnough: (count: number) =>
    count === 0
      ? 'No tags have been updated yet, so no image was checked against the policies.'
      : `All of the last ${counted(count, 'updated tag')} are old enough for every policy.`,
  newestOldEnough: 'Newest digest that is old enough',
  noCooldownExemptions: 'There are no exemptions from cooldown policies.',
  atMost30Days: 'At most 30 days from now.',
  revokeCooldownText: 'After the exemption is revoked, cooldown policies apply to the image again.',
}
