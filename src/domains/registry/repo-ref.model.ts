// The numbers are stored, and they are the enum numbers of the API.
export const followModes = { watch: 1, onDemand: 2, full: 3 } as const
export type FollowMode = (typeof followModes)[keyof typeof followModes]

/**
 * A repository in a registry request. `ledger` is the number of the tag history, and `group` is the uid of the group. `path` has
 * the names of the groups and of the repository, such as `acme/team/app`. `follow` is the mode of a mirror.
 */
export type RepoRef = {
  id: number
  uid: string
  ledger: number
  group: string
  path: string
  follow?: FollowMode | undefined
}
