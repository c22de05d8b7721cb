// Orders that many lists have.

const uidOrder = { uid: { column: 'uid', sort: true } } as const
export const nameOrder = { name: { column: 'name', sort: true } } as const
export const createdOrders = { ...uidOrder, createTime: { column: 'create_time', sort: true } } as const

/** Things that change. */
export const changedOrders = { ...createdOrders, updateTime: { column: 'update_time', sort: true } } as const

/** Rules with a name. */
export const ruleOrders = { ...changedOrders, ...nameOrder } as const

/** Exceptions, and other things that expire. */
export const exceptionOrders = { ...createdOrders, expireTime: { column: 'expire_time', sort: true } } as const
