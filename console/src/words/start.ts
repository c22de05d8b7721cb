// Texts of the first page, and of recent tag updates.
export const startWords = {
  noOrganizations: 'There are no organizations yet. To create one, run:',
  notMember:
    'You are not a member of an organization yet. Ask an owner to invite you. If this server allows it, you can also create one:',
  recentUpdates: 'Recent tag updates',
  noTagsAnywhere: 'There are no tags in this organization yet. To create one, push an image:',
  updatedBy: 'Updated by',
  vulnerabilityUnscanned: (summary: string) =>
    `No image that you can see is known to have this vulnerability, but ${summary}.`,
  noVulnerableImages:
    'No image that you can see has this vulnerability. All of them were compared with the data sources.',
}
