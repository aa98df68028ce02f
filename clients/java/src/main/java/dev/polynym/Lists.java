package dev.polynym;

import dev.polynym.v1.BulkChange;
import dev.polynym.v1.Event;
import dev.polynym.v1.FindUsersRequest;
import dev.polynym.v1.FindUsersResponse;
import dev.polynym.v1.FoundUser;
import dev.polynym.v1.ListAttributeNamesRequest;
import dev.polynym.v1.ListAttributeNamesResponse;
import dev.polynym.v1.ListBulkChangesRequest;
import dev.polynym.v1.ListBulkChangesResponse;
import dev.polynym.v1.ListEventsRequest;
import dev.polynym.v1.ListEventsResponse;
import dev.polynym.v1.ListHistoryRequest;
import dev.polynym.v1.ListHistoryResponse;
import dev.polynym.v1.ListNoticesRequest;
import dev.polynym.v1.ListNoticesResponse;
import dev.polynym.v1.ListTenantHistoryRequest;
import dev.polynym.v1.ListTenantHistoryResponse;
import dev.polynym.v1.ListTenantsRequest;
import dev.polynym.v1.ListTenantsResponse;
import dev.polynym.v1.Notice;
import dev.polynym.v1.SearchUsersRequest;
import dev.polynym.v1.SearchUsersResponse;
import dev.polynym.v1.Tenant;
import dev.polynym.v1.TenantEvent;
import dev.polynym.v1.User;

/** All lists that have pages. Each page is fetched when its first item is asked for. */
public final class Lists {
  private final PolynymClient client;

  Lists(PolynymClient client) {
    this.client = client;
  }

  /**
   * The users that match a filter.
   *
   * @param request filter, order, fields, and the size of a page
   * @return the items of all pages
   */
  public Pages<User> search(SearchUsersRequest request) {
    return Pages.of(
        request.getPageToken(),
        token -> client.directory().searchUsers(request.toBuilder().setPageToken(token).build()),
        SearchUsersResponse::getUsersList,
        SearchUsersResponse::getNextPageToken);
  }

  /**
   * The users whom a text finds, the likeliest first.
   *
   * @param request the text, the country of national phone numbers, fields, and the size of a page
   * @return the items of all pages
   */
  public Pages<FoundUser> find(FindUsersRequest request) {
    return Pages.of(
        request.getPageToken(),
        token -> client.directory().findUsers(request.toBuilder().setPageToken(token).build()),
        FindUsersResponse::getMatchesList,
        FindUsersResponse::getNextPageToken);
  }

  /**
   * The history of a user, newest first.
   *
   * @param request the user, the period, the types, and the size of a page
   * @return the items of all pages
   */
  public Pages<Event> history(ListHistoryRequest request) {
    return Pages.of(
        request.getPageToken(),
        token -> client.directory().listHistory(request.toBuilder().setPageToken(token).build()),
        ListHistoryResponse::getEventsList,
        ListHistoryResponse::getNextPageToken);
  }

  /**
   * The events of the users of a tenant.
   *
   * @param request the period, the types, and the size of a page
   * @return the items of all pages
   */
  public Pages<Event> events(ListEventsRequest request) {
    return Pages.of(
        request.getPageToken(),
        token -> client.directory().listEvents(request.toBuilder().setPageToken(token).build()),
        ListEventsResponse::getEventsList,
        ListEventsResponse::getNextPageToken);
  }

  /**
   * The tenants.
   *
   * @param request the prefix of their names, and the size of a page
   * @return the items of all pages
   */
  public Pages<Tenant> tenants(ListTenantsRequest request) {
    return Pages.of(
        request.getPageToken(),
        token -> client.admin().listTenants(request.toBuilder().setPageToken(token).build()),
        ListTenantsResponse::getTenantsList,
        ListTenantsResponse::getNextPageToken);
  }

  /**
   * The history of a tenant, newest first.
   *
   * @param request the tenant, the period, and the size of a page
   * @return the items of all pages
   */
  public Pages<TenantEvent> tenantHistory(ListTenantHistoryRequest request) {
    return Pages.of(
        request.getPageToken(),
        token -> client.admin().listTenantHistory(request.toBuilder().setPageToken(token).build()),
        ListTenantHistoryResponse::getEventsList,
        ListTenantHistoryResponse::getNextPageToken);
  }

  /**
   * The names of the attributes of a tenant.
   *
   * @param request the tenant, and the size of a page
   * @return the items of all pages
   */
  public Pages<String> attributeNames(ListAttributeNamesRequest request) {
    return Pages.of(
        request.getPageToken(),
        token -> client.admin().listAttributeNames(request.toBuilder().setPageToken(token).build()),
        ListAttributeNamesResponse::getNamesList,
        ListAttributeNamesResponse::getNextPageToken);
  }

  /**
   * The notices of a user, newest first.
   *
   * @param request the user, and the size of a page
   * @return the items of all pages
   */
  public Pages<Notice> notices(ListNoticesRequest request) {
    return Pages.of(
        request.getPageToken(),
        token -> client.inbox().listNotices(request.toBuilder().setPageToken(token).build()),
        ListNoticesResponse::getNoticesList,
        ListNoticesResponse::getNextPageToken);
  }

  /**
   * The bulk changes of a tenant, newest first.
   *
   * @param request the tenant, and the size of a page
   * @return the items of all pages
   */
  public Pages<BulkChange> bulkChanges(ListBulkChangesRequest request) {
    return Pages.of(
        request.getPageToken(),
        token -> client.registry().listBulkChanges(request.toBuilder().setPageToken(token).build()),
        ListBulkChangesResponse::getBulkChangesList,
        ListBulkChangesResponse::getNextPageToken);
  }
}
