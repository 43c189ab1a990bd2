select id, name from people where name like 'A%' order by id;
