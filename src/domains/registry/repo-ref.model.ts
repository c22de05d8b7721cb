// The numbers are stored, and are those of the contract.
export const followModes = { watch: 1, onDemand: 2, full: 3 } as const
export type FollowMode = (typeof followModes)[keyof typeof followModes]

/**
 * A repository in a registry request. `ledger` is the number of the tag history, `group` the uid of the group, and `path` the
 * path in names, `acme/team/app`. `follow` is the mode of a mirror.
 */
export type RepoRef = {
  id: number
  uid: string
  ledger: number
  group: string
  path: string
  follow?: FollowMode | undefined
}
