// Version 1 of access requests. The rules are those of version 2.
import type { Handlers } from '#app.ts'
import type { Groups } from '#gen/pinfold/iam/v1/groups_pb.ts'
import { withFieldNames } from '#lib/errors.ts'
import { toPublicGroup } from '../groups/groups.model.ts'
import { groupToV1 } from '../groups/groups.v1.ts'
import * as access from './access-requests.service.ts'

export const groupAccessV1: Handlers<typeof Groups> = {
  async lookupGroup(call) {
    const group = groupToV1(toPublicGroup(await access.lookupGroup(call)))
    return { $typeName: 'pinfold.platform.iam.LookupGroupResponse', group }
  },

  async requestGroupAccess(call, { groupId }) {
    await withFieldNames({ group_uid: 'group_id' }, access.requestAccess(call, groupId))
    return { $typeName: 'pinfold.platform.iam.RequestGroupAccessResponse' }
  },

  async checkEligibility(call) {
    return { $typeName: 'pinfold.platform.iam.CheckEligibilityResponse', eligible: access.checkEligibility(call) }
  },
}
